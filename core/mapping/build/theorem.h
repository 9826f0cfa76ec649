// Texts about the theorem that holds for a mapping, for its certificate.
#ifndef PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
#define PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_

#include <cstdint>
#include <string>

#include "core/landmark/count_rule.h"
#include "core/mapping/builder/landmark_factor.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// Facts that determine for which rows a theorem holds.
struct ScopeFacts {
  // Whether gamma, or the scaling of columns, was taken from the stream.
  bool gamma_of_stream = false;
  bool scaling_of_stream = false;
  int64_t pool_rows = 0;
  // The factored landmarks; null in a mapping without a factor.
  const LandmarkFactor* landmarks = nullptr;
};

// Returns the rows for which the theorem of TheoremOf holds, and what the rank tolerance cut off.
// Returns an empty text if no theorem applies.
std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts);

// Returns the theorem that applies to the mapping: its source, its statement and, if the mapping's
// parameters determine them, its numbers (docs/maths.md).
std::string TheoremOf(const TheoremTask& task);

// Returns the text that follows the theorem if a rule found the number of landmarks: how the rule
// found it, and in which sense the theorem then holds.
std::string FoundCountText(const LandmarkPolicy& policy, const LandmarkCount& count);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
