// The statement that a certificate names.
#ifndef PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
#define PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_

#include <cstdint>
#include <string>

#include "core/landmark/landmark_growth.h"
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

// What follows the theorem where the number of landmarks was found by growing: the number, and what
// the theorem is worth of it.
std::string GrowthText(const MappingSpec& mapping, const LandmarkGrowth& growth);

// Warning that a limit came before the residual that was asked for, and what to change. REQUIRES:
// the growth did not reach it.
std::string GrowthLimitText(const MappingSpec& mapping, const LandmarkGrowth& growth);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_THEOREM_H_
