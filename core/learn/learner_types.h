// All kinds of learners.
#ifndef PHIMAP_CORE_LEARN_LEARNER_TYPES_H_
#define PHIMAP_CORE_LEARN_LEARNER_TYPES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/learn/learner_type.h"

namespace phimap {

// Learner types in the order in which help lists them.
absl::Span<const LearnerType* const> LearnerTypes();
// Returns null for an unknown name.
const LearnerType* FindLearnerType(absl::string_view name);
// The learner type that is used if the user does not give one.
const LearnerType& DefaultLearnerType();
// Returns the names of all types as a text such as "perceptron, winnow or linear_svm".
std::string LearnerTypeNames();

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_TYPES_H_
