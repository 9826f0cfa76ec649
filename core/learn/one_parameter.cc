// A learner with one weight vector for all classes. The features consist of one block per class.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/learn/row_order.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {

extern const LearnerType kOneParameterType;

namespace {

struct OneParameterOptions {
  double C = 1;
  double tolerance = 0.01;
  int64_t epochs = 1000;
};

// A learner with a single weight vector v for all classes. Its input is the output of the mapping
// `multiclass`: for each row x, the features (R_1 x, …, R_L x), where L is the number of classes
// and R_y is the random matrix of class y. The score of class y is ⟨v, R_y x⟩ (Shi, Shen, Hill, van
// den Hengel 2012, Theorem 9). Let y_i be the class of row x_i. Training finds the v that minimises
//
//   ½‖v‖² + C Σ_i Σ_{y ≠ y_i} max(0, 1 − ⟨v, R_{y_i} x_i − R_y x_i⟩)².
//
// This is a support vector machine on the differences R_{y_i} x_i − R_y x_i. The theorem bounds the
// cosines of these differences with v.
//
// Training is dual coordinate descent (Hsieh and others 2008). Each pass visits the rows in a new
// random order (RowOrder). Training ends when the largest projected gradient of a pass is at most
// `tolerance`, or after `epochs` passes.
//
// Errors: INVALID_ARGUMENT (COLUMNS_MISMATCH) unless the columns form L blocks of equal length.
// Memory: 8 bytes per pair of row and class.
// Cost:   2·n·p flops per pass over n rows of p columns.
class OneParameter : public Learner {
 public:
  explicit OneParameter(const OneParameterOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const OneParameterOptions options_;
};

constexpr int64_t kRowsPerCheckpoint = 64;

class OneParameterModel : public Model {
 public:
  OneParameterModel(std::vector<double> shared, int32_t class_count, std::string summary)
      : shared_(std::move(shared)), class_count_(class_count), summary_(std::move(summary)) {}

  int64_t columns() const override { return class_count_ * static_cast<int64_t>(shared_.size()); }
  int32_t class_count() const override { return class_count_; }
  absl::Span<const double> shared_weights() const override { return shared_; }
  std::string Summary() const override { return summary_; }

  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override {
    PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
    const auto length = static_cast<int64_t>(shared_.size());
    for (int64_t i = 0; i < rows.rows(); ++i) {
      if (i % kRowsPerScoring == 0) {
        PHIMAP_RETURN_IF_ERROR(
            checkpoint(static_cast<double>(i) / static_cast<double>(rows.rows())));
      }
      MultiplyVector(1, ConstMatrixView<double>(rows.row(i), class_count_, length), shared_.data(),
                     0, scores.row(i), 1);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<double> shared_;
  int32_t class_count_;
  std::string summary_;
};

// Coordinate descent on the dual variables α_iy >= 0, one for each row i and each class y other
// than the row's own class y_i. The weight vector is v = Σ α_iy (R_{y_i} x_i − R_y x_i).
// OneParameter explains the other symbols.
class Descent {
 public:
  Descent(const TrainingSet& examples, double C)
      : examples_(examples),
        length_(examples.rows.cols() / examples.class_count),
        softness_(1 / (2 * C)),
        alpha_(examples.rows.rows(), examples.class_count),
        v_(static_cast<size_t>(length_)),
        difference_(static_cast<size_t>(length_)) {}

  // Updates α_iy for each class y other than the class of row i. Returns the largest projected
  // gradient.
  double Visit(int64_t i) {
    double largest = 0;
    for (int32_t y = 0; y < examples_.class_count; ++y) {
      if (y != examples_.labels[i]) largest = std::max(largest, Step(i, y));
    }
    return largest;
  }

  std::vector<double> TakeWeights() { return std::move(v_); }

 private:
  double Step(int64_t i, int32_t rival) {
    const double* own = examples_.rows.row(i) + examples_.labels[i] * length_;
    const double* other = examples_.rows.row(i) + rival * length_;
    for (int64_t k = 0; k < length_; ++k) difference_[k] = own[k] - other[k];
    const ConstMatrixView<double> difference(difference_.data(), 1, length_);
    double lead = 0;
    double square = 0;
    MultiplyVector(1, difference, v_.data(), 0, &lead, 1);
    MultiplyVector(1, difference, difference_.data(), 0, &square, 1);
    double& alpha = alpha_(i, rival);
    const double gradient = lead - 1 + softness_ * alpha;
    const double projected = alpha > 0 ? gradient : std::min(gradient, 0.0);
    if (projected == 0) return 0;
    const double before = alpha;
    alpha = std::max(0.0, alpha - gradient / (square + softness_));
    const double change = alpha - before;
    for (int64_t k = 0; k < length_; ++k) v_[k] += change * difference_[k];
    return std::abs(projected);
  }

  const TrainingSet& examples_;
  int64_t length_;
  double softness_;
  Matrix<double> alpha_;
  std::vector<double> v_;
  std::vector<double> difference_;
};

absl::Status CheckBlocks(const TrainingSet& examples) {
  const int64_t columns = examples.rows.cols();
  if (columns % examples.class_count == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch, "rows",
                   absl::StrCat("one_parameter needs features with one block of columns per class, "
                                "such as those of the mapping multiclass(classes=",
                                examples.class_count, ", dimensions=…): expected a multiple of ",
                                CountOf(examples.class_count, "column"), ", got ", columns),
                   {{"actual", absl::StrCat(columns)}});
}

absl::StatusOr<std::unique_ptr<const Model>> OneParameter::Train(const TrainingSet& examples,
                                                                 uint64_t seed,
                                                                 Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kOneParameterType));
  PHIMAP_RETURN_IF_ERROR(CheckBlocks(examples));
  const int64_t n = examples.rows.rows();
  Descent descent(examples, options_.C);
  RowOrder order(n, seed);
  double largest = 2 * options_.tolerance;
  int64_t epoch = 0;
  for (; epoch < options_.epochs && largest > options_.tolerance; ++epoch) {
    largest = 0;
    const std::vector<int64_t>& rows = order.Next();
    for (int64_t k = 0; k < n; ++k) {
      if (k % kRowsPerCheckpoint == 0) {
        const double passes = static_cast<double>(epoch) + static_cast<double>(k) / n;
        PHIMAP_RETURN_IF_ERROR(checkpoint(passes / static_cast<double>(options_.epochs)));
      }
      largest = std::max(largest, descent.Visit(rows[k]));
    }
  }
  return std::make_unique<const OneParameterModel>(
      descent.TakeWeights(), examples.class_count,
      absl::StrCat(epoch, " passes; the largest violation in the last pass was ", largest));
}

constexpr Parameter kOneParameterParameters[] = {
    {.name = "C",
     .default_text = "1",
     .least = 0,
     .largest = 1e12,
     .above_least = true,
     .line = "weight of the rows' losses relative to ½‖v‖², for the weight vector v"},
    {.name = "tolerance",
     .default_text = "0.01",
     .least = 0,
     .largest = 1,
     .above_least = true,
     .line = "the solver's stopping tolerance"},
    {.name = "epochs",
     .type = ParameterType::kInteger,
     .default_text = "1000",
     .least = 1,
     .largest = 1e6,
     .line = "maximum number of passes over the rows"},
};

}  // namespace

constinit const LearnerType kOneParameterType = {
    .name = "one_parameter",
    .line = "one weight vector for all classes, on features of the mapping multiclass",
    .parameters = kOneParameterParameters,
    .training_bytes = [](const ParameterValues&,
                         const TrainingShape& shape) { return 16 * shape.rows * shape.classes; },
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const OneParameter>(
          OneParameterOptions{.C = values.Number("C"),
                              .tolerance = values.Number("tolerance"),
                              .epochs = values.Integer("epochs")});
    },
};

}  // namespace phimap
