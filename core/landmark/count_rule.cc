#include "core/landmark/count_rule.h"

namespace phimap {

// Each rule is defined in the file of its name. For a new rule, add a declaration here and an entry
// to the list below.
extern const CountRule kResidualRule;

const std::vector<const CountRule*>& CountRules() {
  static const std::vector<const CountRule*>& rules = *new std::vector<const CountRule*>{
      &kResidualRule,
  };
  return rules;
}

}  // namespace phimap
