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

// Kernel with which kernel learners compare raw rows. Rows come as the kernel takes them: of a
// mapping that standardises, standardised.
struct KernelInput {
  // With every gamma resolved.
  std::optional<KernelExpression> kernel;
  // Explicit features of raw rows, for learners that run on them.
  std::shared_ptr<const RowMap> map;
};

// Size of a learning problem; as double, for forecasts.
struct TrainingShape {
  double rows = 0;
  // Columns of the rows that the learner takes.
  double columns = 0;
  // Number of features that the learner makes of the columns, if it makes any.
  double features = 0;
  double classes = 0;
};

// Each is defined in the file of its class and listed in learner_types.cc. Immutable; functions are
// pure.
struct LearnerType {
  // Name in texts: "linear_svm".
  absl::string_view name;
  // Description, for people.
  absl::string_view line;
  absl::Span<const Parameter> parameters;
  // From raw rows and a kernel; else from features.
  bool learns_from_kernel = false;
  // Whether it needs KernelInput::map. Null: it does not.
  bool (*needs_row_map)(const ParameterValues& values) = nullptr;
  // Bytes of memory that training takes beside rows and model, at most.
  double (*training_bytes)(const ParameterValues& values, const TrainingShape& shape) = nullptr;
  // REQUIRES: `input` has the parts that it needs.
  std::unique_ptr<const Learner> (*make)(const ParameterValues& values,
                                         const KernelInput& input) = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_TYPE_H_
