#include "core/mapping/spec/kernel_requirements.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/alternatives.h"
#include "core/status/error.h"

namespace phimap {

std::string LeafKernelNames(absl::FunctionRef<bool(const LeafKernel&)> is) {
  std::vector<std::string> names;
  for (const LeafKernel* leaf : LeafKernels()) {
    if (is(*leaf)) names.push_back(absl::StrCat(leaf->name, "()"));
  }
  return Alternatives(names);
}

absl::Status KernelNotApplicable(const BuildSpec& spec, absl::string_view requirement) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", "kernel",
      absl::StrCat(spec.mapping.kind->name, " ", requirement, ", got ", spec.kernel.ToText()));
}

absl::Status RequireDefinite(const BuildSpec& spec) {
  const absl::Status definite = spec.kernel.CheckPositiveSemidefinite();
  if (definite.ok()) return definite;
  return MakeError(definite.code(), "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "kernel",
                   definite.message(), DetailOf(definite)->metadata);
}

absl::Status RequireLinear(const BuildSpec& spec) {
  double factor = 0;
  if (spec.kernel.IsScaledLinear(&factor) && factor > 0) return absl::OkStatus();
  return KernelNotApplicable(
      spec, "maps the inputs themselves: it requires linear(), optionally scaled by c > 0");
}

}  // namespace phimap
