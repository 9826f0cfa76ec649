// The landmark policy "uniform", for which the theorems about margins are proven.
#ifndef PHIMAP_CORE_LANDMARK_UNIFORM_LANDMARKS_H_
#define PHIMAP_CORE_LANDMARK_UNIFORM_LANDMARKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace phimap {

// Returns `landmarks` members of `pool` (slots of a reservoir), drawn without replacement, in
// random order. They are the first members of a permutation drawn from StreamId::kLandmarks of
// `seed`, so each subset is equally likely. With the same pool and seed, the result for n landmarks
// is the beginning of the result for any larger number. REQUIRES landmarks ≥ 0.
//
// Errors:   FAILED_PRECONDITION (ROWS_TOO_FEW, field "landmarks", with `expected` and
//           `actual`) if the pool has fewer than `landmarks` rows.
// Cost:     O(pool) time and 8 bytes per pool row.
absl::StatusOr<std::vector<int64_t>> UniformLandmarks(absl::Span<const int64_t> pool,
                                                      int64_t landmarks, uint64_t seed);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_UNIFORM_LANDMARKS_H_
