// Projected kernel evaluation: the kernel is evaluated on a few random sums and differences of the
// columns instead of the columns themselves (Achlioptas, McSherry, Schölkopf 2001, section 5).
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_

#include <cstdint>

#include "core/plan/plan.h"

namespace phimap {

// Adds a projection to `input`: a columns × dimensions matrix of fair coins ±1, where entry (i, j)
// is number i·dimensions + j of StreamId::kInputSigns. Multiplies the scale by 1/√dimensions, so
// that squared lengths are preserved on average. REQUIRES: `input` has no projection,
// 1 <= dimensions <= kMaxPlanDimension.
void ProjectInput(int64_t dimensions, uint64_t seed, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_
