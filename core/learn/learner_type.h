// A kind of learner, described in one descriptor.
#ifndef PHIMAP_CORE_LEARN_LEARNER_TYPE_H_
#define PHIMAP_CORE_LEARN_LEARNER_TYPE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/parameter.h"
#include "core/learn/learner.h"
#include "core/learn/row_map.h"

namespace phimap {

// Kernel with which kernel learners compare raw rows. Rows must be given as the kernel takes them:
// standardised, for a mapping that standardises.
struct KernelInput {
  // The kernel, with every gamma resolved.
  std::optional<KernelExpression> kernel;
  // Explicit features of raw rows, for learners that run on them.
  std::shared_ptr<const RowMap> map;
};

// Size of a learning problem; as double, for forecasts.
struct TrainingShape {
  double rows = 0;
  // Columns of the rows that the learner takes.
  double columns = 0;
  // Number of features that the learner computes from the columns; 0 if none.
  double features = 0;
  double classes = 0;
};

// Descriptors are defined in the file of the learner's class and listed in learner_types.cc.
// Immutable; functions are pure.
struct LearnerType {
  // Name in texts: "linear_svm".
  absl::string_view name;
  // Description, for people.
  absl::string_view line;
  absl::Span<const Parameter> parameters;
  // Whether it learns from raw rows and a kernel. Otherwise it learns from features.
  bool learns_from_kernel = false;
  // Whether it needs KernelInput::map. Null if it never does.
  bool (*needs_row_map)(const ParameterValues& values) = nullptr;
  // Maximum bytes of memory that training takes beside rows and model.
  double (*training_bytes)(const ParameterValues& values, const TrainingShape& shape) = nullptr;
  // REQUIRES: `input` has the parts that it needs.
  std::unique_ptr<const Learner> (*make)(const ParameterValues& values,
                                         const KernelInput& input) = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_TYPE_H_
