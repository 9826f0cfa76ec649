// Cost and result sizes of building a mapping; for forecasts. Each builder declares its own.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_COST_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_COST_H_

#include <cstdint>

#include "core/linalg/work.h"
#include "core/plan/rows.h"

namespace phimap {

// At full rank, and beside the task itself.
struct MappingCost {
  Work work;
  // The largest memory of the builder at any time, and the memory of the finished mapping.
  int64_t build_bytes = 0;
  int64_t kept_bytes = 0;
  // Sizes of the served plan: the numbers of its matrices, its features, the work of a row.
  int64_t plan_numbers = 0;
  int64_t output_columns = 0;
  Work row;
  // Rank of the factor; 0 when there is none.
  int64_t rank = 0;
};

// Bytes of `numbers` in a PlanPair: in the serving type and in the reference.
inline int64_t PlanPairBytes(FloatType serving_type, int64_t numbers) {
  return (FloatTypeBytes(serving_type) + static_cast<int64_t>(sizeof(double))) * numbers;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_COST_H_
