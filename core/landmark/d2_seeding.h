// D² seeding: rows of a pool that are far from each other (Arthur, Vassilvitskii 2007).
#ifndef PHIMAP_CORE_LANDMARK_D2_SEEDING_H_
#define PHIMAP_CORE_LANDMARK_D2_SEEDING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/landmark/landmark_policy.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

struct D2SeedingTask {
  // An N×p matrix, after the input stage.
  ConstMatrixView<double> pool;
  // Number of rows to choose: 1 <= seeds <= N.
  int64_t seeds = 0;
  uint64_t seed = 0;
  // Returns the number of threads that may work now. Called before each step. The result does not
  // depend on it.
  absl::FunctionRef<int()> threads;
};

// Chooses `seeds` distinct rows by greedy k-means++, and returns them in the order in which they
// were chosen. The first row is uniform. For each further row, 2 + ⌊ln seeds⌋ candidates are drawn.
// The probability of a candidate is proportional to its squared Euclidean distance from the nearest
// chosen row. Of these candidates, the one that leaves the smallest sum of such squared distances
// over the pool is chosen. If every remaining row is a copy of a chosen row, the rest are drawn
// uniformly from the rows not chosen.
//
// Result:  bit-for-bit repeatable. It depends only on pool, seeds and seed, and on the CPU type
//          that OpenBLAS detects. Draws from StreamId::kD2Seeds.
// Errors:  those of `checkpoint`.
// Cost:    N·seeds·(2 + ln seeds)·p multiplications; 16·N bytes, and 8·N bytes per candidate.
absl::StatusOr<std::vector<int64_t>> D2Seeds(const D2SeedingTask& task, Checkpoint checkpoint);

// Return the work of D2Seeds, and its memory including the pool, for forecasts.
Work WorkOfD2Seeds(const LandmarkPoolShape& shape);
int64_t BytesOfD2Seeds(const LandmarkPoolShape& shape);

// Returns the task's pool for computing distances: after the input stage and, if rows may be
// shifted, centred on the pool's mean. Centring changes no distance but keeps more digits.
Matrix<double> PoolForDistances(const LandmarkChoiceTask& task);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_D2_SEEDING_H_
