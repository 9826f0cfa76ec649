// Projected kernel evaluation: a kernel of few random sums and differences of the columns in place
// of the columns (Achlioptas, McSherry, Schölkopf 2001, section 5).
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_

#include <cstdint>

#include "core/plan/plan.h"

namespace phimap {

// Gives the stage P, columns × dimensions, of fair coins ±1: entry i·dimensions + j is that number
// of StreamId::kInputSigns. The scale takes 1/√dimensions, so that squared lengths are kept on
// average. REQUIRES: no projection is there, 1 <= dimensions <= kMaxPlanDimension.
void ProjectInput(int64_t dimensions, uint64_t seed, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_INPUT_PROJECTION_H_
