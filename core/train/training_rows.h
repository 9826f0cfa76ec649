// The rows of a training, in the forms that its steps take: names of classes, a sample for what
// learns from raw rows, and examples and labels that are made again of rows that were kept.
#ifndef PHIMAP_CORE_TRAIN_TRAINING_ROWS_H_
#define PHIMAP_CORE_TRAIN_TRAINING_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/head/head.h"
#include "core/learn/parts.h"
#include "core/learn/ridge_moments.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/random/random_stream.h"

namespace phimap {

// Bytes of a row that is kept, besides its content: texts, nodes and the spare capacity of growing
// lists.
inline constexpr int64_t kRowOverhead = 160;

// Rows and bytes of the sample that the raw baseline learns from, and its largest width.
inline constexpr int64_t kRawRows = 20'000;
inline constexpr int64_t kRawBytes = int64_t{64} << 20;
inline constexpr int64_t kRawColumns = 2048;

// LABEL_INVALID for a label of a stream, with its row.
absl::Status InvalidLabel(absl::string_view label, int64_t row, absl::string_view expected);
// Returns the finite number that a label is, or nullopt.
std::optional<double> NumberIn(absl::string_view label);
// Whether the name of a class is an integer as it is printed.
bool IsInteger(const std::string& name);

// The names of classes, numbered in the order in which they come.
class ClassNames {
 public:
  // Errors: INVALID_ARGUMENT (CLASSES_TOO_MANY, LABEL_INVALID).
  absl::StatusOr<int32_t> NumberOf(absl::string_view label, int64_t row);
  int32_t count() const { return static_cast<int32_t>(names_.size()); }
  // Whether all names are integers.
  bool integers() const;
  // Returns an error if two names are the same number, such as 1 and 1.0.
  absl::Status CheckDifferent() const;
  // Returns the place of each number in the final order: by value for integers, else byte by byte.
  std::vector<int32_t> Places() const;
  std::vector<std::string> InOrder(absl::Span<const int32_t> places) const;

 private:
  absl::flat_hash_map<std::string, int32_t> index_;
  std::vector<std::string> names_;
};

// A uniform sample of the rows that are trained on, for what learns from raw rows.
class RawSample {
 public:
  RawSample(int64_t columns, uint64_t seed);

  int64_t bytes(int64_t columns) const { return limit_ * (8 * columns + kRowOverhead); }
  void Add(const PartRow& row);
  std::vector<PartRow>& rows() { return rows_; }

 private:
  const int64_t limit_;
  const RandomStream stream_;
  int64_t seen_ = 0;
  std::vector<PartRow> rows_;
};

// Examples that are made again of the contents of rows.
class ContentRows {
 public:
  // `columns` is 0 for strings. REQUIRES: the contents stay while the examples are used.
  ContentRows(absl::Span<const PartRow> rows, ExampleKind kind, int64_t columns);
  ContentRows(const ContentRows&) = delete;
  ContentRows& operator=(const ContentRows&) = delete;

  const ExamplesView& examples() const { return examples_; }
  ConstMatrixView<double> numbers() const { return numbers_.view(); }

 private:
  std::vector<const std::string*> strings_;
  Matrix<double> numbers_;
  ExamplesView examples_;
};

// What is known of rows, in the form that learners take.
struct KnownRows {
  KnownRows(absl::Span<const PartRow> rows, HeadTask task, bool weighted);
  RowLabels view() const { return {labels, targets, weights}; }

  std::vector<int32_t> labels;
  std::vector<double> targets;
  std::vector<double> weights;
};

// Shifts and scales columns as some rows are: mean 0 and variance 1; a constant column is only
// shifted.
class Standardizer {
 public:
  explicit Standardizer(ConstMatrixView<double> rows);
  Matrix<double> Of(ConstMatrixView<double> rows) const;
  // Mean over the columns of their variances in these rows.
  double mean_variance() const { return mean_variance_; }

 private:
  std::vector<double> shift_;
  std::vector<double> scale_;
  double mean_variance_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_TRAIN_TRAINING_ROWS_H_
