// D² seeding: rows of a pool that are far from each other (Arthur, Vassilvitskii 2007).
#ifndef PHIMAP_CORE_LANDMARK_D2_SEEDING_H_
#define PHIMAP_CORE_LANDMARK_D2_SEEDING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/landmark/landmark_policy.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"

namespace phimap {

struct D2SeedingTask {
  // N×p, after the input stage.
  ConstMatrixView<double> pool;
  // 1 <= seeds <= N.
  int64_t seeds = 0;
  uint64_t seed = 0;
  // Returns the number of threads that may work now. Called before each step. The result does not
  // depend on it.
  absl::FunctionRef<int()> threads;
};

// Returns distinct rows in the order in which they were chosen (greedy k-means++). The first is
// uniform. For each further row, 2 + ⌊ln seeds⌋ candidates are drawn, each with probability
// proportional to its squared Euclidean distance from the nearest chosen row. The candidate that
// leaves the smallest sum of these distances is chosen. If all remaining rows are copies of chosen
// ones, the rest are drawn uniformly from the rows not chosen.
//
// Bits:    a function of pool, seeds and seed (per BLAS core). Draws from StreamId::kD2Seeds.
// Errors:  whatever `checkpoint` returns.
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
