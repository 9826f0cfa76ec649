// Projected kernel evaluation: the kernel is evaluated on a few random sums and differences of the
// columns instead of the columns themselves (Achlioptas, McSherry, Schölkopf 2001, section 5).
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_

#include <cstdint>

#include "core/plan/plan.h"

namespace phimap {

// Adds a random projection to `input`. Its matrix is columns × dimensions, and each entry is 1 or
// −1 with equal probability: entry (i, j) is number i·dimensions + j of StreamId::kInputSigns. Also
// multiplies the input's scale by 1/√dimensions, which preserves squared lengths on average.
//
// REQUIRES: `input` has no projection, 1 <= dimensions <= kMaxPlanDimension.
void ProjectInput(int64_t dimensions, uint64_t seed, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_
