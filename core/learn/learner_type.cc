#include "core/learn/learner_type.h"

#include <vector>

#include "core/status/error.h"

namespace phimap {

// Each learner type is defined in the file of its class. For a new learner, add a declaration here
// and an entry to the list below.
extern const LearnerType kPerceptronType;
extern const LearnerType kWinnowType;
extern const LearnerType kLinearSvmType;
extern const LearnerType kLogisticType;
extern const LearnerType kSvrType;
extern const LearnerType kRidgeType;
extern const LearnerType kWeakLearnerType;
extern const LearnerType kOneParameterType;
extern const LearnerType kKernelSgdType;
extern const LearnerType kKernelSvmType;

namespace {

constexpr const LearnerType* kTypes[] = {
    &kPerceptronType, &kWinnowType,      &kLinearSvmType,    &kLogisticType,  &kSvrType,
    &kRidgeType,      &kWeakLearnerType, &kOneParameterType, &kKernelSgdType, &kKernelSvmType,
};

}  // namespace

absl::Span<const LearnerType* const> LearnerTypes() { return kTypes; }

const LearnerType* FindLearnerType(absl::string_view name) {
  for (const LearnerType* type : kTypes) {
    if (type->name == name) return type;
  }
  return nullptr;
}

std::vector<absl::string_view> LearnersThat(bool LearnerType::*ability) {
  std::vector<absl::string_view> names;
  for (const LearnerType* type : kTypes) {
    if (type->*ability) names.push_back(type->name);
  }
  return names;
}

const LearnerType& DefaultHeadLearnerType() { return kRidgeType; }

const LearnerType& DefaultLearnerType() { return kLinearSvmType; }

std::string LearnerTypeNames() {
  std::vector<absl::string_view> names;
  for (const LearnerType* type : kTypes) names.push_back(type->name);
  return Alternatives(names);
}

}  // namespace phimap
