// The landmark policy "uniform", for which the theorems are proven.
#ifndef PHIMAP_CORE_LANDMARK_UNIFORM_LANDMARKS_H_
#define PHIMAP_CORE_LANDMARK_UNIFORM_LANDMARKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace phimap {

// `landmarks` members of `pool` (slots of a reservoir), without replacement, each subset equally
// likely, in random order: the first of a permutation drawn from StreamId::kLandmarks of `seed`.
// For the same pool, more landmarks continue fewer. REQUIRES landmarks ≥ 0.
//
// Errors:   FAILED_PRECONDITION, ROWS_TOO_FEW on "spec.landmarks" with `expected` and `actual`, if
//           the pool is smaller.
// Cost:     O(pool) time and 8 bytes a pool row.
absl::StatusOr<std::vector<int64_t>> UniformLandmarks(absl::Span<const int64_t> pool,
                                                      int64_t landmarks, uint64_t seed);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_UNIFORM_LANDMARKS_H_
