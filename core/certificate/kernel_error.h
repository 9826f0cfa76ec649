// Measures the kernel error |K(x, y) − F(x)·F(y)| on pairs of held-out rows.
#ifndef PHIMAP_CORE_CERTIFICATE_KERNEL_ERROR_H_
#define PHIMAP_CORE_CERTIFICATE_KERNEL_ERROR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/certificate/measurement_task.h"
#include "core/certificate/pair_error.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Pairs of held-out rows that the kernel error is measured on: each row of begin .. end−1 with
// every earlier row from `first` on.
struct PairTile {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first = 0;
};

// Number of tiles for h held-out rows, and the t-th tile.
int64_t PairTileCount(int64_t rows);
PairTile PairTileAt(int64_t rows, int64_t t);

// Errors of all pairs that are compared.
struct KernelErrors {
  explicit KernelErrors(int64_t rows) : by_row(rows) {}

  MeasuredError error;
  // The errors of the pairs, summed by row.
  RowErrors by_row;
  // Pairs whose error is over √(ρ(x)·ρ(y)).
  int64_t unbounded = 0;
  // |K(x, y) − F(x)·F(y)| of rows 0 and 1, 2 and 3 …, which are independent of each other.
  std::vector<double> disjoint;
};

// Returns K(x, x) of each row, from rows after the kernel's input stage and their ‖x‖².
std::vector<double> DiagonalOf(const MeasurementTask& task, const Matrix<double>& x,
                               const std::vector<double>& norms);

// Measures |K(x, y) − F(x)·F(y)| over pairs of distinct rows: each row with earlier rows of its own
// tile and of the tile before. The rows are in random order, so these pairs are a sample of all
// pairs, in which every row has a part. Tiles are summed separately and added in order, so the bits
// do not depend on threads.
//
// `x`: rows after the kernel's input stage; `features`: served ones; `residuals`: ρ of each row, or
// empty. Errors: those of `control`.
absl::StatusOr<KernelErrors> KernelError(const MeasurementTask& task, const Matrix<double>& x,
                                         const Matrix<double>& features,
                                         const std::vector<double>& residuals,
                                         const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_KERNEL_ERROR_H_
