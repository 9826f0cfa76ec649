// Finds how many landmarks suffice for a residual.
#ifndef PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_
#define PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/landmark/count_rule.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

// Number of landmarks that are added between two checks of the residual.
inline constexpr int64_t kGrowthBlock = 32;

struct LandmarkGrowth {
  enum class End {
    kReached,     // the residual
    kCandidates,  // the last candidate
    kRank,        // the rest of every deciding row is within the rank tolerance
  };
  End end = End::kReached;
  // Number of candidates used, from the first on: a multiple of kGrowthBlock, or all.
  int64_t landmarks = 0;
  // The quantile with these landmarks, over the deciding rows whose K(x, x) is more than rounding.
  double quantile_95 = 0;
  int64_t deciding_rows = 0;
};

// Adds candidates in blocks until the 95 % quantile of ρ(x)/K(x, x) over the deciding rows is at
// most `task.goal`, where ρ(x) = K(x, x) − ‖L⁻¹k(x)‖². Candidates are added as rows of a Cholesky
// factor of the normalised Gram matrix, and takes from each deciding row what they explain of it. A
// candidate whose rest is within max(n·unit, 4β) of its own K(x, x) adds nothing and is passed
// over, n the landmarks so far and β the error of values (ValueErrorOf): as the factor of F2 will
// drop it. The result is therefore what F2 leaves, up to that tolerance.
//
// Errors:  INVALID_ARGUMENT (VALUE_NOT_FINITE); whatever `control` returns, between blocks.
// Bits:    a function of the task (per BLAS core), for any number of threads.
// Cost:    of n landmarks in the end n·(n/2 + h) kernel values and n³/3 + h·n²/2 multiplications;
//          BytesOfGrowth. REQUIRES: m ≥ 1.
absl::StatusOr<LandmarkGrowth> GrowLandmarks(const CountTask& task, const TileControl& control);

Work WorkOfGrowth(const CountShape& shape);
// Memory, the rows of the task included.
int64_t BytesOfGrowth(const CountShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_
