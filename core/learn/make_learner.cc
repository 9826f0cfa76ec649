#include "core/learn/make_learner.h"

#include "absl/strings/str_cat.h"
#include "core/learn/kernel_sgd.h"
#include "core/learn/kernel_svm.h"
#include "core/learn/linear_svm.h"
#include "core/learn/one_parameter.h"
#include "core/learn/perceptron.h"
#include "core/learn/weak_learner.h"
#include "core/learn/winnow.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status CheckKernelInput(const LearnerSpec& spec, const KernelInput& input) {
  if (!spec.is_kernel_learner()) return absl::OkStatus();
  const auto missing = [&](absl::string_view what) {
    return MakeError(absl::StatusCode::kInvalidArgument, "NO_KERNEL", "",
                     absl::StrCat(spec.ToText(), " learns from raw rows and needs ", what));
  };
  if (spec.needs_row_map()) {
    return input.map != nullptr ? absl::OkStatus() : missing("a map of rows to features");
  }
  if (!input.kernel.has_value()) return missing("a kernel");
  if (input.kernel->NeedsScale() || input.kernel->NeedsMedian()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "UNRESOLVED_GAMMA", "kernel",
        absl::StrCat("expected numbers for every gamma, got ", input.kernel->ToText()));
  }
  return absl::OkStatus();
}

std::unique_ptr<const Learner> MakeKernelSgd(const LearnerSpec& spec, const KernelInput& input) {
  const KernelSgdOptions options{
      .strategy = spec.strategy, .rate = spec.rate, .epochs = spec.epochs};
  if (spec.needs_row_map()) return std::make_unique<const KernelSgd>(options, input.map);
  return std::make_unique<const KernelSgd>(options, KernelProgram::Compile(*input.kernel));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input) {
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  PHIMAP_RETURN_IF_ERROR(CheckKernelInput(spec, input));
  switch (spec.kind) {
    case LearnerKind::kPerceptron:
      return std::make_unique<const Perceptron>(
          PerceptronOptions{.epochs = spec.epochs, .average = spec.average, .bias = spec.bias});
    case LearnerKind::kLinearSvm:
      return std::make_unique<const LinearSvm>(
          LinearSvmOptions{.C = spec.C, .tolerance = spec.tolerance, .bias = spec.bias});
    case LearnerKind::kWinnow:
      return std::make_unique<const Winnow>(WinnowOptions{.rate = spec.rate,
                                                          .threshold = spec.threshold,
                                                          .epochs = spec.epochs,
                                                          .bias = spec.bias});
    case LearnerKind::kWeakLearner:
      return std::make_unique<const WeakLearner>(WeakLearnerOptions{
          .rounds = spec.rounds, .margin = spec.margin, .draws = spec.draws, .bias = spec.bias});
    case LearnerKind::kOneParameter:
      return std::make_unique<const OneParameter>(
          OneParameterOptions{.C = spec.C, .tolerance = spec.tolerance, .epochs = spec.epochs});
    case LearnerKind::kKernelSgd:
      return MakeKernelSgd(spec, input);
    case LearnerKind::kKernelSvm:
      return std::make_unique<const KernelSvm>(
          KernelSvmOptions{.C = spec.C, .tolerance = spec.tolerance},
          KernelProgram::Compile(*input.kernel));
  }
  PHIMAP_CHECK(false);
}

}  // namespace phimap
