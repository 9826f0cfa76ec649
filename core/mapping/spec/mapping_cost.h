// Cost and result sizes of building a mapping, for forecasts. Each builder has a function that
// returns its MappingCost.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_COST_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_COST_H_

#include <cstdint>

#include "core/linalg/work.h"
#include "core/plan/rows.h"

namespace phimap {

inline constexpr int64_t kDoubleBytes = sizeof(double);

// Forecasts assume full rank, and do not include the memory of the task itself.
struct MappingCost {
  Work work;
  // Peak memory of the builder, and memory of the finished mapping.
  int64_t build_bytes = 0;
  int64_t kept_bytes = 0;
  // The served plan: how many numbers its matrices have, how many features it computes, and its
  // work per row.
  int64_t plan_numbers = 0;
  int64_t output_columns = 0;
  Work row;
  // Rank of the factor; 0 if the mapping has no factor.
  int64_t rank = 0;
};

// Returns the bytes that `numbers` take in a PlanPair: in the served plan and in the reference.
inline int64_t PlanPairBytes(FloatType serving_type, int64_t numbers) {
  return (FloatTypeBytes(serving_type) + kDoubleBytes) * numbers;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_COST_H_
