// Finds how many landmarks suffice for a residual.
#ifndef PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_
#define PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

// Number of landmarks added between two measurements of the residual.
inline constexpr int64_t kGrowthBlock = 32;

struct GrowthTask {
  const KernelProgram& kernel;
  // Candidates, m×p, which are added in this order, and deciding rows, h×p, which are not among the
  // candidates. Both are as served: after the input stage and rounded to the serving type.
  ConstMatrixView<double> candidates;
  ConstMatrixView<double> deciding;
  // Growth ends when the 95 % quantile of ρ(x)/K(x, x) over the deciding rows is at most this;
  // ρ(x) = K(x, x) − ‖L⁻¹k(x)‖².
  double residual = 0;
  // Unit round-off of the serving type.
  double unit = 0x1p-24;
};

struct LandmarkGrowth {
  enum class End {
    kReached,     // the residual was reached
    kCandidates,  // no candidates were left
    kRank,        // the residual of every deciding row is within the rank tolerance
  };
  End end = End::kReached;
  // Number of candidates, from the first, that become landmarks: a multiple of kGrowthBlock, or
  // all.
  int64_t landmarks = 0;
  // The 95 % quantile with these landmarks, and the number of deciding rows. Rows whose K(x, x) is
  // only rounding are excluded.
  double quantile_95 = 0;
  int64_t deciding_rows = 0;
};

// Adds candidates in blocks, as rows of a Cholesky factor of the normalised Gram matrix, and
// subtracts from the residual of each deciding row what they explain. Skips a candidate whose
// residual is at most max(n·unit, 4β) of its own K(x, x), where n is the number of landmarks so far
// and β the error of values (ValueErrorOf), because the factor of F2 will drop it. Hence the
// resulting residuals are those of F2, up to this tolerance.
//
// Errors:  INVALID_ARGUMENT (VALUE_NOT_FINITE); whatever `control` returns, between blocks.
// Bits:    a function of the task (per BLAS core), for any number of threads.
// Cost:    for n landmarks n·(n/2 + h) kernel values and n³/3 + h·n²/2 multiplications;
//          BytesOfGrowth. REQUIRES: m ≥ 1.
absl::StatusOr<LandmarkGrowth> GrowLandmarks(const GrowthTask& task, const TileControl& control);

// Size of a task, for forecasts. These assume that all candidates are added.
struct GrowthShape {
  int64_t candidates = 0;
  int64_t deciding = 0;
  int64_t columns = 0;
  ValueWork value;
};
Work WorkOfGrowth(const GrowthShape& shape);
// Includes the memory of the task's rows.
int64_t BytesOfGrowth(const GrowthShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_
