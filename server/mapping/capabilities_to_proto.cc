#include "server/mapping/capabilities_to_proto.h"

#include <string>

#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"
#include "core/landmark/landmark_policy.h"
#include "core/learn/learner_type.h"
#include "core/mapping/spec/mapping.h"
#include "core/mapping/spec/mapping_parameters.h"

namespace phimap {
namespace {

void ParameterToProto(const Parameter& parameter, v1::ParameterInfo* out) {
  out->set_name(std::string(parameter.name));
  out->set_type(std::string(ParameterTypeName(parameter.type)));
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

void MappingToProto(const Mapping& mapping, v1::Capability* out) {
  out->set_name(std::string(mapping.name));
  out->set_line(std::string(mapping.line));
  for (const absl::string_view name : mapping.parameters) {
    ParameterToProto(DescribeParameter(mapping, name), out->add_parameters());
  }
  out->set_kernels(std::string(mapping.kernels));
  for (const LeafKernel* leaf : LeafKernels()) {
    if (mapping.takes_leaf == nullptr || mapping.takes_leaf(*leaf)) {
      out->add_leaf_kernels(std::string(leaf->name));
    }
  }
  out->set_default_kernel(std::string(mapping.default_kernel));
  out->set_theorem(std::string(mapping.theorem_line));
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
  for (const Mapping* mapping : Mappings()) MappingToProto(*mapping, out->add_mappings());
  for (const KernelCapability& kernel : KernelCapabilities()) {
    KernelToProto(kernel, out->add_kernels());
  }
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    PolicyToProto(*policy, out->add_policies());
  }
  for (const LearnerType* learner : LearnerTypes()) LearnerToProto(*learner, out->add_learners());
}

}  // namespace phimap
