#include "core/landmark/count_rules.h"

namespace phimap {

// Each is defined in the file of its name; a new one takes a line here and one below.
extern const CountRule kResidualRule;

const std::vector<const CountRule*>& CountRules() {
  static const std::vector<const CountRule*>& rules = *new std::vector<const CountRule*>{
      &kResidualRule,
  };
  return rules;
}

}  // namespace phimap
