#include "core/learn/learner_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/learn/learner_types.h"
#include "core/status/status_macros.h"

namespace phimap {

absl::StatusOr<LearnerSpec> LearnerSpec::Parse(absl::string_view text) {
  if (text.empty()) return Parse(absl::StrCat(DefaultLearnerType().name, "()"));
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  PHIMAP_ASSIGN_OR_RETURN(
      const ParsedCall call,
      ParsedCall::Parse(scanner, absl::StrCat("a learner: ", LearnerTypeNames())));
  if (!scanner.AtEnd()) return scanner.Expected("the end");
  LearnerSpec spec;
  spec.type = FindLearnerType(call.name());
  if (spec.type == nullptr) {
    return ExpressionError(call.column(), absl::StrCat("unknown learner '", call.name(),
                                                       "'; expected ", LearnerTypeNames()));
  }
  PHIMAP_ASSIGN_OR_RETURN(spec.values, ParameterValues::Take(call, spec.type->parameters));
  return spec;
}

std::string LearnerSpec::ToText() const {
  return absl::StrCat(type->name, "(", values.ToText(), ")");
}

}  // namespace phimap
