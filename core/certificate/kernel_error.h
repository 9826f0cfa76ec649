// Measures the kernel error |K(x, y) − F(x)·F(y)| on pairs of held-out rows.
#ifndef PHIMAP_CORE_CERTIFICATE_KERNEL_ERROR_H_
#define PHIMAP_CORE_CERTIFICATE_KERNEL_ERROR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/certificate/measurement.h"
#include "core/certificate/pair_error.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Pairs of held-out rows for the kernel error: each row i of begin .. end−1 with rows first .. i−1.
struct PairTile {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first = 0;
};

// PairTileCount returns the number of tiles for this many held-out rows; PairTileAt returns the
// t-th tile.
int64_t PairTileCount(int64_t rows);
PairTile PairTileAt(int64_t rows, int64_t t);

// Errors of all measured pairs.
struct KernelErrors {
  explicit KernelErrors(int64_t rows)
      : by_row(rows),
        kernel_squares(static_cast<size_t>(rows)),
        error_squares(static_cast<size_t>(rows)) {}

  MeasuredError error;
  // Sums of the errors by row.
  RowErrors by_row;
  // Number of pairs whose error exceeds √((ρ(x) + a(x))·(ρ(y) + a(y))). ρ is the residual as
  // served, and a its allowance for rounding (ResidualBounds in measurement.cc).
  int64_t unbounded = 0;
  // Errors of the pairs of rows 0 and 1, 2 and 3 …, which are independent of each other.
  std::vector<double> disjoint;
  // For each row, the sums over its pairs of K(x, y)² and of (K(x, y) − F(x)·F(y))².
  std::vector<double> kernel_squares;
  std::vector<double> error_squares;
};

// Returns the kernel that the features approximate, centred or not, on the first rows of the
// measurement: at most kMaxFidelityRows, or as many as a remote kernel's values allow. All of the
// symmetric matrix is filled in. `x`: rows after the kernel's input stage. Errors: those of
// `control`.
absl::StatusOr<Matrix<double>> FirstRowsGram(const MeasurementTask& task, const Matrix<double>& x,
                                             const TileControl& control);

// Returns K(x, x) of each row. `x`: rows after the kernel's input stage; `norms`: their ‖x‖².
std::vector<double> DiagonalOf(const MeasurementTask& task, const Matrix<double>& x,
                               const std::vector<double>& norms);

// Measures |K(x, y) − F(x)·F(y)| on pairs of rows. Each row is compared with the rows before it in
// its own tile, and with all rows of the previous tile. Rows are in random order, so these pairs
// are a random sample of all pairs, and every row is in some pair. Each tile has its own sums,
// which are added in the order of the tiles. The result is therefore bit-for-bit the same for any
// number of threads.
//
// `x`: rows after the kernel's input stage; `features`: their features as served; `bounds`: ρ + a
// of each row, or empty. Errors: those of `control`.
absl::StatusOr<KernelErrors> KernelError(const MeasurementTask& task, const Matrix<double>& x,
                                         const Matrix<double>& features,
                                         const std::vector<double>& bounds,
                                         const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_KERNEL_ERROR_H_
