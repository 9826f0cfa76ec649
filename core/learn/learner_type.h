// LearnerType describes one kind of learner: its name, its parameters, and how to make it. Lists
// all kinds.
#ifndef PHIMAP_CORE_LEARN_LEARNER_TYPE_H_
#define PHIMAP_CORE_LEARN_LEARNER_TYPE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/parameter.h"
#include "core/learn/learner.h"
#include "core/linalg/matrix.h"

namespace phimap {

// A map from raw rows to explicit features. Immutable and thread-safe.
class RowMap {
 public:
  virtual ~RowMap() = default;

  virtual int64_t input_columns() const = 0;
  virtual int64_t output_columns() const = 0;
  // Computes the features of rows: row i of `out` becomes F(row i of `rows`). The features of a row
  // are bit-for-bit identical whether the row is mapped alone or with others. Shapes: rows
  // n×input_columns(), out n×output_columns().
  virtual absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const = 0;
};

// What a kernel learner needs besides the rows. The rows must already have the form that the kernel
// takes: if the mapping standardises its input, they must be standardised.
struct KernelInput {
  // The kernel, with a number for every gamma.
  std::optional<KernelExpression> kernel;
  // Computes explicit features of raw rows. For kernel learners that need features.
  std::shared_ptr<const RowMap> map;
};

class RidgeTraining;

// Size of a learning problem. The numbers are double because they are used in forecasts.
struct TrainingShape {
  double rows = 0;
  // Columns of the rows that the learner takes.
  double columns = 0;
  // Number of features that the learner computes for each row; 0 if none.
  double features = 0;
  // 0 for numbers.
  double classes = 0;
};

// Descriptors are defined in the file of the learner's class and listed in learner_type.cc.
// Immutable; functions are pure.
struct LearnerType {
  // Name in texts: "linear_svm".
  absl::string_view name;
  // Description, for people.
  absl::string_view line;
  absl::Span<const Parameter> parameters;
  // Whether the learner learns from raw rows and a kernel. Otherwise it learns from features.
  bool learns_from_kernel = false;
  bool learns_classes = true;
  bool learns_numbers = false;
  // Whether Model::linear() of its models is not null, so that they can be the head of a version.
  bool makes_linear_head = false;
  // Whether TrainingSet::weights may be given.
  bool takes_row_weights = false;
  // Returns whether the learner needs KernelInput::map. Null if it never does.
  bool (*needs_row_map)(const ParameterValues& values) = nullptr;
  // Returns the maximum memory, in bytes, that training takes besides the rows and the model.
  double (*training_bytes)(const ParameterValues& values, const TrainingShape& shape) = nullptr;
  // Creates the learner. REQUIRES: `input` has the parts that the learner needs.
  std::unique_ptr<const Learner> (*make)(const ParameterValues& values,
                                         const KernelInput& input) = nullptr;
  // Begins to learn from rows that come once and are not kept, so that their number is not limited
  // by memory. Null if all rows must be in memory. `limit_bytes` bounds RidgeTraining::bytes().
  std::unique_ptr<RidgeTraining> (*begin_one_pass)(const ParameterValues& values, HeadTask task,
                                                   int64_t features, int64_t limit_bytes) = nullptr;

  bool needs_all_rows() const { return begin_one_pass == nullptr; }
};

// Learner types in the order in which help lists them.
absl::Span<const LearnerType* const> LearnerTypes();
// Returns null for an unknown name.
const LearnerType* FindLearnerType(absl::string_view name);
// The names of the types that have an ability, such as &LearnerType::learns_numbers.
std::vector<absl::string_view> LearnersThat(bool LearnerType::*ability);
// The learner type that is used if the user does not give one.
const LearnerType& DefaultLearnerType();
// The learner type that trains heads if the user does not give one: it takes any number of rows.
const LearnerType& DefaultHeadLearnerType();
// Returns the names of all types as a text such as "perceptron, winnow or linear_svm".
std::string LearnerTypeNames();

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_TYPE_H_
