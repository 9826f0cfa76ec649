// Linear classifiers that liblinear trains: a support vector machine, and logistic regression.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learn/class_weight.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/learn/liblinear.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kLinearSvmType;
extern const LearnerType kLogisticType;

namespace {

// For each class, a weight vector w is trained to separate the class from all others, with labels y
// = ±1. (With two classes, there is only one such problem.) Throughout, x stands for a row with
// `bias` appended. Training minimises
//
//   ½‖w‖² + C Σ_i c_i·loss(y_i w·x_i),   loss(m) = max(0, 1 − m)²   linear_svm (L2R_L2LOSS_SVC)
//                                        loss(m) = log(1 + e^{−m})   logistic (L2R_LR)
//
// With two classes, c_i is the weight of the row's class. With more classes, it is the weight of
// the class that is separated from the others for the rows of that class, and 1 for the others, as
// in liblinear's own program. Training draws nothing at random, so the seed is not used. The scores
// are w·x; with two classes they are −w·x and w·x. For logistic, 1/(1 + exp(−w·x)) estimates the
// probability of the class against the rest.
class LinearClassifier : public Learner {
 public:
  LinearClassifier(const LearnerType& type, const LiblinearObjective& objective,
                   ClassWeight class_weight)
      : type_(type), objective_(objective), class_weight_(std::move(class_weight)) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const LearnerType& type_;
  const LiblinearObjective objective_;
  const ClassWeight class_weight_;
};

absl::StatusOr<std::unique_ptr<const Model>> LinearClassifier::Train(const TrainingSet& examples,
                                                                     uint64_t /*seed*/,
                                                                     Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(type_));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> weights,
                          class_weight_.Of(RowsOfClasses(examples.labels, examples.class_count)));
  const bool two_classes = examples.class_count == 2;
  const int32_t first_class = two_classes ? 1 : 0;
  const auto set_targets = [&](int32_t problem, absl::Span<double> targets) {
    const int32_t y = problem + first_class;
    for (size_t i = 0; i < targets.size(); ++i) targets[i] = examples.labels[i] == y ? 1 : -1;
    return SideWeights{.positive = weights[y], .negative = two_classes ? weights[0] : 1};
  };
  PHIMAP_ASSIGN_OR_RETURN(
      LiblinearSolution solution,
      SolveByLiblinear(type_.name, examples.rows, objective_, examples.class_count - first_class,
                       set_targets, checkpoint));
  const std::string summary = absl::StrCat(solution.newton_steps, " Newton steps");
  if (!two_classes) {
    return std::make_unique<const LinearModel>(SplitIntercepts(solution.w.view(), objective_.bias),
                                               summary);
  }
  Matrix<double> separators(2, solution.w.cols());
  for (int64_t k = 0; k < separators.cols(); ++k) {
    separators(0, k) = -solution.w(0, k);
    separators(1, k) = solution.w(0, k);
  }
  return std::make_unique<const LinearModel>(SplitIntercepts(separators.view(), objective_.bias),
                                             summary);
}

std::unique_ptr<const Learner> MakeClassifier(const LearnerType& type,
                                              LiblinearObjective::Loss loss,
                                              const ParameterValues& values) {
  return std::make_unique<const LinearClassifier>(
      type,
      LiblinearObjective{.loss = loss,
                         .C = values.Number("C"),
                         .bias = values.Number("bias"),
                         .tolerance = values.Number("tolerance")},
      ClassWeight(values));
}

constexpr Parameter kClassifierParameters[] = {kLiblinearC, kLiblinearTolerance, kLiblinearBias,
                                               kClassWeightParameter};

}  // namespace

constinit const LearnerType kLinearSvmType = {
    .name = "linear_svm",
    .line = "linear support vector machine, squared hinge (liblinear)",
    .parameters = kClassifierParameters,
    .makes_linear_head = true,
    .training_bytes = LiblinearBytes,
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return MakeClassifier(kLinearSvmType, LiblinearObjective::Loss::kSquaredHinge, values);
    },
};

constinit const LearnerType kLogisticType = {
    .name = "logistic",
    .line = "logistic regression (liblinear)",
    .parameters = kClassifierParameters,
    .makes_linear_head = true,
    .training_bytes = LiblinearBytes,
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return MakeClassifier(kLogisticType, LiblinearObjective::Loss::kLogistic, values);
    },
};

}  // namespace phimap
