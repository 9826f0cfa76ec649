#include "proto/calls/capabilities.h"

#include <string>

#include "absl/strings/string_view.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"
#include "core/landmark/landmark_policy.h"
#include "core/learn/learner_type.h"
#include "core/mapping/spec/family.h"
#include "core/mapping/spec/mapping_parameters.h"

namespace phimap {
namespace {

v1::ParameterInfo::Type TypeToProto(ParameterType type) {
  switch (type) {
    case ParameterType::kInteger:
      return v1::ParameterInfo::TYPE_INTEGER;
    case ParameterType::kNumber:
      return v1::ParameterInfo::TYPE_NUMBER;
    case ParameterType::kWord:
      return v1::ParameterInfo::TYPE_WORD;
    case ParameterType::kBoolean:
      return v1::ParameterInfo::TYPE_BOOLEAN;
    case ParameterType::kNumbers:
      return v1::ParameterInfo::TYPE_NUMBERS;
    case ParameterType::kMatrix:
      return v1::ParameterInfo::TYPE_MATRIX;
    case ParameterType::kColumns:
      return v1::ParameterInfo::TYPE_COLUMNS;
    case ParameterType::kText:
      return v1::ParameterInfo::TYPE_TEXT;
  }
  return v1::ParameterInfo::TYPE_UNSPECIFIED;
}

void ParameterToProto(const Parameter& parameter, v1::ParameterInfo* out) {
  out->set_name(std::string(parameter.name));
  out->set_type(TypeToProto(parameter.type));
  out->set_required(parameter.absent == Parameter::Absent::kRequired);
  if (parameter.absent == Parameter::Absent::kDefault) {
    out->set_default_value(std::string(parameter.default_text));
  }
  if (parameter.least > -Parameter::kInfinity) out->set_least(parameter.least);
  if (parameter.largest < Parameter::kInfinity) out->set_largest(parameter.largest);
  out->set_above_least(parameter.above_least);
  for (const absl::string_view word : parameter.words) out->add_words(std::string(word));
  out->set_unit(std::string(parameter.unit));
  out->set_line(std::string(parameter.line));
  out->set_expected(parameter.Expected());
}

void FamilyToProto(const Family& family, v1::Capability* out) {
  out->set_name(std::string(family.name));
  out->set_line(std::string(family.line));
  for (const absl::string_view name : family.parameters) {
    ParameterToProto(DescribeParameter(family, name), out->add_parameters());
  }
  out->set_kernels(std::string(family.kernels));
  for (const LeafKernel* leaf : LeafKernels()) {
    if (family.takes_leaf == nullptr || family.takes_leaf(*leaf)) {
      out->add_leaf_kernels(std::string(leaf->name));
    }
  }
  out->set_default_kernel(std::string(family.default_kernel));
  out->set_theorem(std::string(family.theorem_line));
}

void KernelToProto(const KernelCapability& kernel, v1::Capability* out) {
  out->set_name(std::string(kernel.name));
  out->set_line(std::string(kernel.line));
  out->set_formula(std::string(kernel.formula));
  for (const Parameter& parameter : kernel.parameters) {
    ParameterToProto(parameter, out->add_parameters());
  }
}

void PolicyToProto(const LandmarkPolicy& policy, v1::Capability* out) {
  out->set_name(std::string(policy.name));
  out->set_line(std::string(policy.line));
  out->set_theorem(std::string(policy.theorem));
  out->set_takes_strings(policy.no_strings.empty());
  out->set_takes_remote_kernels(policy.no_remote.empty());
}

void LearnerToProto(const LearnerType& learner, v1::Capability* out) {
  out->set_name(std::string(learner.name));
  out->set_line(std::string(learner.line));
  for (const Parameter& parameter : learner.parameters) {
    ParameterToProto(parameter, out->add_parameters());
  }
  out->set_learns_from_kernel(learner.learns_from_kernel);
  out->set_is_default(&learner == &DefaultLearnerType());
}

}  // namespace

void CapabilitiesToProto(v1::ListCapabilitiesResponse* out) {
  for (const Family* family : Families()) FamilyToProto(*family, out->add_families());
  for (const KernelCapability& kernel : KernelCapabilities()) {
    KernelToProto(kernel, out->add_kernels());
  }
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    PolicyToProto(*policy, out->add_policies());
  }
  for (const LearnerType* learner : LearnerTypes()) LearnerToProto(*learner, out->add_learners());
}

}  // namespace phimap
