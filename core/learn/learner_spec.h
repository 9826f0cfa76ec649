// A learner and the values of its parameters, with a text form: "linear_svm(C=10)". learner_type.h
// lists the learners.
#ifndef PHIMAP_CORE_LEARN_LEARNER_SPEC_H_
#define PHIMAP_CORE_LEARN_LEARNER_SPEC_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernel/parameter.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"

namespace phimap {

// Created by Parse. A default-constructed spec has no type and may only be assigned to.
struct LearnerSpec {
  const LearnerType* type = nullptr;
  ParameterValues values;

  // Whether the learner learns from raw rows and a kernel.
  bool is_kernel_learner() const { return type->learns_from_kernel; }
  // Whether the learner needs a map of raw rows to features.
  bool needs_row_map() const {
    return type->needs_row_map != nullptr && type->needs_row_map(values);
  }

  // Parses the text form. An empty text gives the default learner. If the text is not valid,
  // returns INVALID_ARGUMENT (reason EXPRESSION_INVALID); the message states the position in the
  // text, counted from 1, and the expected and actual text.
  static absl::StatusOr<LearnerSpec> Parse(absl::string_view text);
  // Canonical text with every parameter; Parse(ToText()) gives an equal spec.
  std::string ToText() const;
};

// Whether the learner is to be tried with several C, of which validation rows choose one (C=auto).
bool ChoosesC(const LearnerSpec& spec);
// Returns OK unless ChoosesC, for a use that has no validation rows: INVALID_ARGUMENT
// (LEARNER_NOT_APPLICABLE, field "C").
absl::Status CheckNothingToChoose(const LearnerSpec& spec);

// Makes the learner of a spec. Errors: those of CheckNothingToChoose.
//
// Returns INVALID_ARGUMENT if `input` lacks a kernel or a map that the learner needs (reason
// KERNEL_NOT_AVAILABLE), or if a gamma of the kernel is not resolved (GAMMA_UNRESOLVED).
absl::StatusOr<std::unique_ptr<const Learner>> MakeLearner(const LearnerSpec& spec,
                                                           const KernelInput& input = {});

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_SPEC_H_
