#include "core/kernel/remote_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Returns the word that the call gives for `parameter`; empty if the call does not give the
// parameter.
absl::StatusOr<std::string> TakeName(const ParsedCall& call, absl::string_view parameter) {
  const CallArgument* const argument = call.Take(parameter);
  if (argument == nullptr) return std::string();
  if (!argument->word.empty()) return argument->word;
  return ExpressionError(
      argument->value_column,
      absl::StrCat(parameter, " of service is a name such as edit_distance, got ",
                   argument->ValueText()),
      parameter);
}

absl::StatusOr<RemoteKernel> FromCall(const ParsedCall& call) {
  RemoteKernel remote;
  if (call.name() == "precomputed") {
    PHIMAP_RETURN_IF_ERROR(call.OnlyHas({}));
    return remote;
  }
  PHIMAP_RETURN_IF_ERROR(call.OnlyHas({"endpoint", "kernel"}));
  remote.source = RemoteKernel::Source::kService;
  PHIMAP_ASSIGN_OR_RETURN(remote.endpoint, TakeName(call, "endpoint"));
  if (remote.endpoint.empty()) {
    return ExpressionError(call.column(),
                           "service needs endpoint=NAME, where NAME is a kernel service on the "
                           "operator's list",
                           "endpoint");
  }
  PHIMAP_ASSIGN_OR_RETURN(remote.kernel, TakeName(call, "kernel"));
  if (remote.kernel.empty()) remote.kernel = remote.endpoint;
  return remote;
}

}  // namespace

absl::StatusOr<std::optional<RemoteKernel>> RemoteKernel::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  const int column = scanner.column();
  absl::StatusOr<std::string> name = scanner.Word("a kernel");
  if (!name.ok() || (*name != "precomputed" && *name != "service")) {
    return std::optional<RemoteKernel>();
  }
  PHIMAP_ASSIGN_OR_RETURN(const ParsedCall call,
                          ParsedCall::ParseArguments(scanner, *std::move(name), column));
  PHIMAP_ASSIGN_OR_RETURN(RemoteKernel remote, FromCall(call));
  if (!scanner.AtEnd()) {
    return scanner.Expected(
        absl::StrCat("the end (", call.name(),
                     " cannot be part of an expression, because its kernel is remote)"));
  }
  return std::optional<RemoteKernel>(std::move(remote));
}

std::string RemoteKernel::ToText() const {
  if (source == Source::kPrecomputed) return "precomputed()";
  return absl::StrCat("service(endpoint=", endpoint, ", kernel=", kernel, ")");
}

}  // namespace phimap
