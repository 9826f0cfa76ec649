#include "core/learn/make_learner.h"

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status CheckKernelInput(const LearnerSpec& spec, const KernelInput& input) {
  if (!spec.is_kernel_learner()) return absl::OkStatus();
  const auto missing = [&](absl::string_view what) {
    return MakeError(absl::StatusCode::kInvalidArgument, "KERNEL_NOT_AVAILABLE", "",
                     absl::StrCat(spec.ToText(), " learns from raw rows and needs ", what));
  };
  if (spec.needs_row_map()) {
    return input.map != nullptr ? absl::OkStatus() : missing("a map of rows to features");
  }
  if (!input.kernel.has_value()) return missing("a kernel");
  if (input.kernel->NeedsScale() || input.kernel->NeedsMedian()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "GAMMA_UNRESOLVED", "kernel",
        absl::StrCat("expected a number for every gamma, got ", input.kernel->ToText()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input) {
  PHIMAP_RETURN_IF_ERROR(CheckKernelInput(spec, input));
  return spec.type->make(spec.values, input);
}

}  // namespace phimap
