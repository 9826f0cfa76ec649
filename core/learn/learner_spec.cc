#include "core/learn/learner_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/learn/learner_type.h"
#include "core/status/error.h"
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

namespace {

absl::Status CheckKernelInput(const LearnerSpec& spec, const KernelInput& input) {
  if (!spec.is_kernel_learner()) return absl::OkStatus();
  const auto missing = [&](absl::string_view what) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kKernelNotAvailable, "",
                     absl::StrCat(spec.ToText(), " learns from raw rows and needs ", what));
  };
  if (spec.needs_row_map()) {
    return input.map != nullptr ? absl::OkStatus() : missing("a map of rows to features");
  }
  if (!input.kernel.has_value()) return missing("a kernel");
  if (input.kernel->NeedsScale() || input.kernel->NeedsMedian()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kGammaUnresolved, "kernel",
        absl::StrCat("expected a number for every gamma, got ", input.kernel->ToText()));
  }
  return absl::OkStatus();
}

}  // namespace

bool ChoosesC(const LearnerSpec& spec) {
  const auto is_c = [](const Parameter& parameter) { return parameter.name == "C"; };
  const absl::Span<const Parameter> parameters = spec.type->parameters;
  return std::any_of(parameters.begin(), parameters.end(), is_c) && !spec.values.Word("C").empty();
}

absl::Status CheckNothingToChoose(const LearnerSpec& spec) {
  if (!ChoosesC(spec)) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kLearnerNotApplicable, "C",
                   absl::StrCat("C=auto is chosen by the validation rows of a training, and there "
                                "are none here; give ",
                                spec.type->name, " a number"));
}

absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input) {
  PHIMAP_RETURN_IF_ERROR(CheckNothingToChoose(spec));
  PHIMAP_RETURN_IF_ERROR(CheckKernelInput(spec, input));
  return spec.type->make(spec.values, input);
}

}  // namespace phimap
