// Learners on examples, in the product's own text forms.
#ifndef PHIMAP_LAB_LEARNING_H_
#define PHIMAP_LAB_LEARNING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "lab/built_map.h"
#include "lab/examples.h"

namespace phimap::lab {

// Trains "linear_svm(C=10)" and the like; `kernel` is for learners that have one
// ("poly(degree=2, gamma=1, coef0=1)").
absl::StatusOr<std::unique_ptr<const Model>> Trained(const std::string& learner,
                                                     const Examples& examples, uint64_t seed,
                                                     const std::string& kernel = "");
// The share of the examples that the model puts into another class.
absl::StatusOr<double> ErrorOn(const Model& model, const Examples& examples);
// The error on `test` of what is learnt from `train`.
absl::StatusOr<double> TestError(const std::string& learner, const Examples& train,
                                 const Examples& test, uint64_t seed,
                                 const std::string& kernel = "");
// The examples as features.
absl::StatusOr<Examples> Mapped(const BuiltMap& map, const Examples& examples);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_LEARNING_H_
