// Resolving `gamma=scale` and `gamma=median` from the data.
#ifndef PHIMAP_CORE_MAPPING_SAMPLE_GAMMA_H_
#define PHIMAP_CORE_MAPPING_SAMPLE_GAMMA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/landmark/moments.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Most pairs that the median is taken over.
inline constexpr int64_t kMaxGammaPairs = 1'000'000;

// 1/(p·Var), Var the population variance of all entries of the stream, after standardisation if
// that is asked for; `shifted` false: columns are scaled only. FAILED_PRECONDITION
// (GAMMA_UNDEFINED) when all entries are equal.
absl::StatusOr<double> ScaleGamma(const ColumnMoments& moments, bool standardized,
                                  bool shifted = true);

// 1/median ‖x−y‖² over all pairs of distinct rows of `pool`, or over kMaxGammaPairs pairs drawn
// from StreamId::kGammaPairs of `seed` when there are more. FAILED_PRECONDITION (GAMMA_UNDEFINED)
// when the median is 0 or no pair exists.
absl::StatusOr<double> MedianGamma(ConstMatrixView<double> pool, uint64_t seed);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_GAMMA_H_
