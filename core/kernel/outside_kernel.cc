#include "core/kernel/outside_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// The word that the call gives `parameter`; empty if it gives none.
absl::StatusOr<std::string> TakeName(const Call& call, absl::string_view parameter) {
  const CallArgument* const argument = call.Take(parameter);
  if (argument == nullptr) return std::string();
  if (!argument->word.empty()) return argument->word;
  return ExpressionError(
      argument->value_column,
      absl::StrCat(parameter, " of service is a name such as edit_distance, got ",
                   argument->ValueText()));
}

absl::StatusOr<OutsideKernel> FromCall(const Call& call) {
  OutsideKernel outside;
  if (call.name() == "precomputed") {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({}));
    return outside;
  }
  PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"endpoint", "kernel"}));
  outside.source = OutsideKernel::Source::kService;
  PHIMAP_ASSIGN_OR_RETURN(outside.endpoint, TakeName(call, "endpoint"));
  if (outside.endpoint.empty()) {
    return ExpressionError(call.column(),
                           "service needs endpoint=NAME, a kernel service on the operator's list");
  }
  PHIMAP_ASSIGN_OR_RETURN(outside.kernel, TakeName(call, "kernel"));
  if (outside.kernel.empty()) outside.kernel = outside.endpoint;
  return outside;
}

}  // namespace

absl::StatusOr<std::optional<OutsideKernel>> OutsideKernel::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  const int column = scanner.column();
  absl::StatusOr<std::string> name = scanner.Word("a kernel");
  if (!name.ok() || (*name != "precomputed" && *name != "service")) {
    return std::optional<OutsideKernel>();
  }
  PHIMAP_ASSIGN_OR_RETURN(const Call call, Call::ParseArguments(scanner, *std::move(name), column));
  PHIMAP_ASSIGN_OR_RETURN(OutsideKernel outside, FromCall(call));
  if (!scanner.AtEnd()) {
    return scanner.Expected(absl::StrCat(
        "the end: ", call.name(), " stands alone, because its values are not computed here"));
  }
  return std::optional<OutsideKernel>(std::move(outside));
}

std::string OutsideKernel::ToText() const {
  if (source == Source::kPrecomputed) return "precomputed()";
  return absl::StrCat("service(endpoint=", endpoint, ", kernel=", kernel, ")");
}

}  // namespace phimap
