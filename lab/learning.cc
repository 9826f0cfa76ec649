#include "lab/learning.h"

#include <vector>

#include "core/kernel/kernel_expression.h"
#include "core/learn/learner_spec.h"
#include "core/status/status_macros.h"

namespace phimap::lab {

absl::StatusOr<std::unique_ptr<const Model>> Trained(const std::string& learner,
                                                     const Examples& examples, uint64_t seed,
                                                     const std::string& kernel) {
  PHIMAP_ASSIGN_OR_RETURN(const LearnerSpec spec, LearnerSpec::Parse(learner));
  KernelInput input;
  if (!kernel.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(input.kernel, KernelExpression::Parse(kernel));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> made, MakeLearner(spec, input));
  return made->Train(examples.set(), seed, NeverStop);
}

absl::StatusOr<double> ErrorOn(const Model& model, const Examples& examples) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<int32_t> classes,
                          model.Predict(examples.rows.view(), NeverStop));
  int64_t wrong = 0;
  for (size_t i = 0; i < classes.size(); ++i) wrong += classes[i] != examples.labels[i];
  return static_cast<double>(wrong) / static_cast<double>(classes.size());
}

absl::StatusOr<double> TestError(const std::string& learner, const Examples& train,
                                 const Examples& test, uint64_t seed, const std::string& kernel) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
                          Trained(learner, train, seed, kernel));
  return ErrorOn(*model, test);
}

absl::StatusOr<Examples> Mapped(const BuiltMap& map, const Examples& examples) {
  Examples mapped{.labels = examples.labels, .classes = examples.classes};
  PHIMAP_ASSIGN_OR_RETURN(mapped.rows, map.Map(examples.rows.view()));
  return mapped;
}

}  // namespace phimap::lab
