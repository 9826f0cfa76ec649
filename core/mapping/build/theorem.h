// Texts about the theorem that a certificate cites.
#ifndef PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
#define PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_

#include <cstdint>
#include <string>

#include "core/landmark/landmark_growth.h"
#include "core/mapping/builder/landmark_factor.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// Facts that decide for which rows a theorem holds.
struct ScopeFacts {
  // Whether gamma was resolved from the stream, and whether columns were scaled by its moments.
  bool gamma_of_stream = false;
  bool scaling_of_stream = false;
  int64_t pool_rows = 0;
  // The factored landmarks; null in a mapping without a factor.
  const LandmarkFactor* landmarks = nullptr;
};

// Returns text about the rows for which TheoremOf's theorem holds, and about the rank tolerance.
// Returns "" if no theorem applies.
std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts);

// Returns the theorem that applies to the mapping: its source, its promise and, if the task
// determines them, its numbers (docs/maths.md).
std::string TheoremOf(const TheoremTask& task);

// Returns the addition to the theorem if the build found the number of landmarks: how it was found,
// and in what sense the theorem holds for it.
std::string GrowthText(const MappingSpec& mapping, const LandmarkGrowth& growth);

// Returns the warning that growth ended before the requested residual was reached, with the limit
// and what to change. REQUIRES: growth.end is not kReached.
std::string GrowthLimitText(const MappingSpec& mapping, const LandmarkGrowth& growth);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
