// The mapping of a version: the plans, and the findings of building them.
#ifndef PHIMAP_CORE_MAPPING_BUILDER_BUILT_MAPPING_H_
#define PHIMAP_CORE_MAPPING_BUILDER_BUILT_MAPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/mapping/builder/landmark_factor.h"
#include "core/mapping/builder/plan_pair.h"

namespace phimap {

// LandmarkFactor is that of mappings with a factor (Mapping::has_factor).
struct BuiltMapping : PlanPair, LandmarkFactor {
  // The landmarks whose values the plan takes, in its order.
  std::vector<int64_t> used;
  // For centred mappings: the mean of K(x_i, x_j) over the landmarks.
  double gram_mean = 0;
  // The theorem, where findings of the build belong to its statement; else Mapping::theorem states
  // it.
  std::string theorem;
  // Points to know before relying on it.
  std::vector<std::string> warnings;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILDER_BUILT_MAPPING_H_
