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
    kReached,     // the residual reached the goal
    kCandidates,  // all candidates are used
    kRank,        // the residual of every deciding row is within the rank tolerance
  };
  End end = End::kReached;
  // Number of landmarks: the first candidates. A multiple of kGrowthBlock, unless it is the number
  // of all candidates.
  int64_t landmarks = 0;
  // Number of deciding rows whose K(x, x) is not only rounding.
  int64_t deciding_rows = 0;
  // The `rank`-th smallest share of these rows with these landmarks, where `rank` is
  // ResidualRank(deciding_rows).
  int64_t rank = 0;
  double share = 0;
};

// Confidence of the number of landmarks, and the quantile that it is about.
inline constexpr double kGrowthConfidence = 0.95;
inline constexpr double kGrowthQuantile = 0.95;

// The k-th smallest of n independent numbers is an upper bound on the 95 % quantile of their law
// with confidence 95 % if P[Bin(n, .95) < k] >= .95. Returns the smallest such k; n + 1 if there is
// none, which is the case for n < 59.
int64_t ResidualRank(int64_t deciding_rows);

// Adds candidates in blocks until they explain the deciding rows well enough: until the 95 %
// quantile of ρ(x)/K(x, x) is at most `task.goal` with confidence 95 %, judged by the order
// statistic of the deciding rows (ResidualRank). With too few deciding rows for any, the largest
// share has to be at most the goal.
//
// The confidence is that of the whole search, although it looks at the same rows after each block.
// Let j be the last block after which the true quantile exceeds the goal. Each share only falls as
// candidates are added, and so does the order statistic. A search that stops at j or before has an
// order statistic of at most the goal there, so also after block j, where this has a probability of
// at most 5 %. The candidates must not depend on the deciding rows.
//
// Here ρ(x) = K(x, x) − ‖L⁻¹k(x)‖² is the residual of row x. The vector k(x) has the kernel values
// of x with the added candidates, and L is the Cholesky factor of their Gram matrix. Each added
// candidate becomes a row of the factor of the normalised Gram matrix. The part that it explains is
// subtracted from the residual of each deciding row.
//
// A candidate x is skipped if its own residual is at most max(n·unit, 4β)·K(x, x), because the
// factor of F2 will drop it too. Here n is the number of landmarks so far, and β is the error of
// kernel values (ValueErrorOf). So the result is the residual that F2 leaves, up to that tolerance.
//
// Errors:  INVALID_ARGUMENT (VALUE_NOT_FINITE); those of `control`, called between blocks.
// Result:  bit-for-bit repeatable. It depends only on the task and on the CPU type that OpenBLAS
//          detects, not on the number of threads.
// Cost:    for n landmarks in the end and h deciding rows, n·(n/2 + h) kernel values and n³/3 +
//          h·n²/2 multiplications; BytesOfGrowth of memory.
// REQUIRES: at least one candidate.
absl::StatusOr<LandmarkGrowth> GrowLandmarks(const CountTask& task, const TileControl& control);

Work WorkOfGrowth(const CountShape& shape);
// Returns the memory in bytes, including the rows of the task.
int64_t BytesOfGrowth(const CountShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_LANDMARK_GROWTH_H_
