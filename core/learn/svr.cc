// Support vector regression, trained by liblinear.
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/learn/liblinear.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kSvrType;

namespace {

// Linear regression that ignores errors of at most `epsilon`, in the target's units. Let ȳ be the
// mean of the targets, and let x stand for a row with `bias` appended. Training minimises
//
//   ½‖w‖² + C Σ_i max(0, |w·x_i − (y_i − ȳ)| − epsilon)²
//
// by liblinear's primal solver (L2R_L2LOSS_SVR). The number for a row is w·x + ȳ. The mean is
// subtracted because the weight of the constant feature is in ‖w‖²: a target that is far from 0 on
// average would be drawn towards 0. Training draws nothing at random, so the seed is not used.
class SupportVectorRegression : public Learner {
 public:
  explicit SupportVectorRegression(const LiblinearObjective& objective) : objective_(objective) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const LiblinearObjective objective_;
};

absl::StatusOr<std::unique_ptr<const Model>> SupportVectorRegression::Train(
    const TrainingSet& examples, uint64_t /*seed*/, Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kSvrType));
  const double mean = std::accumulate(examples.targets.begin(), examples.targets.end(), 0.0) /
                      static_cast<double>(examples.targets.size());
  const auto set_targets = [&](int32_t, absl::Span<double> targets) {
    for (size_t i = 0; i < targets.size(); ++i) targets[i] = examples.targets[i] - mean;
    return SideWeights();
  };
  PHIMAP_ASSIGN_OR_RETURN(LiblinearSolution solution,
                          SolveByLiblinear(kSvrType.name, examples.rows, objective_,
                                           /*problems=*/1, set_targets, checkpoint));
  LinearWeights weights = SplitIntercepts(solution.w.view(), objective_.bias);
  weights.intercepts[0] += mean;
  return std::make_unique<const LinearModel>(std::move(weights),
                                             absl::StrCat(solution.newton_steps, " Newton steps"));
}

constexpr Parameter kSvrParameters[] = {
    kLiblinearC,
    {.name = "epsilon",
     .default_text = "0.1",
     .least = 0,
     .largest = 1e300,
     .unit = "units of the target",
     .line = "error of a row that costs nothing"},
    kLiblinearTolerance,
    kLiblinearBias,
};

}  // namespace

constinit const LearnerType kSvrType = {
    .name = "svr",
    .line = "linear support vector regression, squared loss beyond epsilon (liblinear)",
    .parameters = kSvrParameters,
    .learns_classes = false,
    .learns_numbers = true,
    .makes_linear_head = true,
    .training_bytes = LiblinearBytes,
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const SupportVectorRegression>(
          LiblinearObjective{.loss = LiblinearObjective::Loss::kSquaredDistance,
                             .C = values.Number("C"),
                             .epsilon = values.Number("epsilon"),
                             .bias = values.Number("bias"),
                             .tolerance = values.Number("tolerance")});
    },
};

}  // namespace phimap
