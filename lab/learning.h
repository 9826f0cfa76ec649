// Trains learners, given in phimap's text syntax, on examples.
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

// Trains a learner such as "linear_svm(C=10)". `kernel`, such as "poly(degree=2, gamma=1,
// coef0=1)", is the kernel of learners that have one.
absl::StatusOr<std::unique_ptr<const Model>> Trained(const std::string& learner,
                                                     const Examples& examples, uint64_t seed,
                                                     const std::string& kernel = "");
// Returns the share of the examples that the model classifies wrongly.
absl::StatusOr<double> ErrorOn(const Model& model, const Examples& examples);
// Trains on `train` and returns the error on `test`.
absl::StatusOr<double> TestError(const std::string& learner, const Examples& train,
                                 const Examples& test, uint64_t seed,
                                 const std::string& kernel = "");
// Returns the examples with their features in place of their rows.
absl::StatusOr<Examples> Mapped(const BuiltMap& map, const Examples& examples);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_LEARNING_H_
