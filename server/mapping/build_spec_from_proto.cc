#include "server/mapping/build_spec_from_proto.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/mapping/mapping_spec_from_proto.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// In BuildRequest, fields of v1.BuildSpec are under "spec" and fields of v1.MappingSpec under
// "spec.spec".
constexpr char kSpecPrefix[] = "spec.";
constexpr char kMappingPrefix[] = "spec.spec.";

absl::Status BadField(absl::string_view field, absl::string_view message) {
  return MakeError(Code::kInvalidArgument, "FIELD_INVALID", field, message);
}

// Adds the field "kernel" to an error of the kernel parser, which does not know from which field
// its text came.
absl::Status InKernelField(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || !detail->field.empty()) return status;
  return MakeError(status.code(), detail->reason, "kernel", status.message(), detail->metadata);
}

absl::StatusOr<KernelExpression> KernelFromProto(const std::string& text, const Mapping& mapping) {
  if (text.empty() && mapping.default_kernel.empty()) {
    return BadField("kernel",
                    absl::StrCat("expected a kernel; ", mapping.name, " takes ", mapping.kernels));
  }
  absl::StatusOr<KernelExpression> parsed =
      KernelExpression::Parse(text.empty() ? mapping.default_kernel : text);
  if (!parsed.ok()) return InKernelField(parsed.status());
  return parsed;
}

}  // namespace

absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& fields) {
  BuildSpec spec;
  absl::StatusOr<MappingSpec> mapping = MappingSpecFromProto(fields.spec());
  if (!mapping.ok()) return WithFieldPrefix(mapping.status(), kMappingPrefix);
  spec.mapping = *std::move(mapping);
  absl::StatusOr<std::optional<RemoteKernel>> remote = RemoteKernel::Parse(fields.kernel());
  if (!remote.ok()) return WithFieldPrefix(InKernelField(remote.status()), kSpecPrefix);
  spec.remote = *std::move(remote);
  if (!spec.remote.has_value()) {
    absl::StatusOr<KernelExpression> kernel = KernelFromProto(fields.kernel(), *spec.mapping.kind);
    if (!kernel.ok()) return WithFieldPrefix(kernel.status(), kSpecPrefix);
    spec.kernel = *std::move(kernel);
  }
  spec.standardize = fields.standardize();
  spec.seed = fields.seed();
  spec.column_names.assign(fields.column_names().begin(), fields.column_names().end());
  if (absl::Status valid = spec.Validate(); !valid.ok()) {
    return WithFieldPrefix(valid, kSpecPrefix);
  }
  return spec;
}

}  // namespace phimap
