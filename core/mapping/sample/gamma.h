// Resolves `gamma=scale` and `gamma=median` from the data.
#ifndef PHIMAP_CORE_MAPPING_SAMPLE_GAMMA_H_
#define PHIMAP_CORE_MAPPING_SAMPLE_GAMMA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/landmark/moments.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Maximum number of pairs for the median.
inline constexpr int64_t kMaxGammaPairs = 1'000'000;

// Returns 1/(p·Var). Here p is the number of columns, and Var is the population variance of all
// entries of the stream, after standardisation if `standardized`. If `shifted` is false,
// standardisation only scales columns. FAILED_PRECONDITION (GAMMA_UNDEFINED) if Var is 0 or not
// finite.
absl::StatusOr<double> ScaleGamma(const ColumnMoments& moments, bool standardized,
                                  bool shifted = true);

// Returns 1/M, where M is the median of the squared distance ‖x − y‖² over all pairs of distinct
// rows x, y of `pool`. If there are more than kMaxGammaPairs pairs, takes the median over that many
// random pairs (StreamId::kGammaPairs of `seed`). FAILED_PRECONDITION (GAMMA_UNDEFINED) if M is 0
// or not finite, or if no pair exists.
absl::StatusOr<double> MedianGamma(ConstMatrixView<double> pool, uint64_t seed);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_GAMMA_H_
