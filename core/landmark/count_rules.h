// All rules that find a number of landmarks.
#ifndef PHIMAP_CORE_LANDMARK_COUNT_RULES_H_
#define PHIMAP_CORE_LANDMARK_COUNT_RULES_H_

#include <vector>

#include "core/landmark/count_rule.h"

namespace phimap {

// Returns all rules by which a build can find the number of landmarks. Thread-safe.
const std::vector<const CountRule*>& CountRules();

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_COUNT_RULES_H_
