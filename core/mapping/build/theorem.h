// The statement that a certificate names.
#ifndef PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
#define PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_

#include <cstdint>
#include <string>

#include "core/landmark/count_rule.h"
#include "core/mapping/builder/landmark_factor.h"
#include "core/mapping/spec/mapping_spec.h"

namespace phimap {

// Facts that decide which rows a theorem speaks of.
struct ScopeFacts {
  // Whether gamma, or the scaling of columns, was taken from the stream.
  bool gamma_of_stream = false;
  bool scaling_of_stream = false;
  int64_t pool_rows = 0;
  // The factored landmarks; null in a mapping without a factor.
  const LandmarkFactor* landmarks = nullptr;
};

// Rows that TheoremOf's theorem speaks of, and the rank tolerance; empty where no theorem applies.
std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts);

// The theorem that applies to the mapping: its source, its promise, and, where the mapping's own
// numbers fix them, its numbers (docs/maths.md).
std::string TheoremOf(const TheoremTask& task);

// Follows the theorem if a rule found the number of landmarks: the number, and what the theorem is
// worth then.
std::string FoundCountText(const LandmarkPolicy& policy, const LandmarkCount& count);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
