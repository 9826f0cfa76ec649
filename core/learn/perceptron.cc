// The perceptron, for any number of classes.
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/learn/row_order.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kPerceptronType;

namespace {

struct PerceptronOptions {
  int64_t epochs = 10;
  bool average = false;
  double bias = 1;
};

// The perceptron. Throughout, x stands for the row with `bias` appended. All weights begin at 0.
// Training makes at most `epochs` passes over the rows, each in a new random order (RowOrder).
//
// One step: the rival of a row's class is the other class with the highest score, or the first of
// several such classes. If the score of the row's class does not exceed the rival's score, x is
// added to the weights of the row's class and subtracted from the weights of the rival. Training
// ends early after a pass without a change, because the rows are then separated.
//
// Two classes: this is Rosenblatt's rule. With labels y = ±1 and w = (w_1 − w_0)/2, it changes w to
// w + yx if y·w·x <= 0. Suppose that ‖x‖ <= R for all rows, and that some unit vector w separates
// them with y·w·x >= γ. Then there are at most (R/γ)² changes (Novikoff 1962).
//
// More classes: this is Kesler's construction (Duda, Hart 1973; the ultraconservative family of
// Crammer, Singer 2003). There are at most 2(R/γ)² changes. Here γ is defined by weights whose
// length over all classes together is 1: it is the least amount by which the score of a row's own
// class exceeds the score of a rival.
//
// If `average`, the model is the mean of the weights after each row (Freund, Schapire 1999).
//
// Cost: epochs · n·L·p multiplications for n rows, L classes and p columns. They cannot be combined
//       into matrix products, because a row's scores depend on the row before it.
class Perceptron : public Learner {
 public:
  explicit Perceptron(const PerceptronOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const PerceptronOptions options_;
};

constexpr int64_t kRowsPerCheckpoint = 64;

// Weights of (x, bias), and the sums from which the mean of the weights is computed.
class Weights {
 public:
  Weights(const TrainingSet& examples, const PerceptronOptions& options)
      : rows_(examples.rows),
        x_(static_cast<size_t>(rows_.cols()) + (options.bias > 0 ? 1 : 0), options.bias),
        scores_(static_cast<size_t>(examples.class_count)),
        weights_(examples.class_count, static_cast<int64_t>(x_.size())),
        weighted_(options.average ? weights_.rows() : 0, weights_.cols()) {}

  // Applies the rule to row i. Returns true if the weights changed.
  bool Learn(int64_t i, int32_t label) {
    ++steps_;
    std::copy_n(rows_.row(i), rows_.cols(), x_.begin());
    MultiplyVector(1, weights_.view(), x_.data(), 0, scores_.data(), 1);
    int32_t rival = -1;
    for (int32_t y = 0; y < static_cast<int32_t>(scores_.size()); ++y) {
      if (y != label && (rival < 0 || scores_[y] > scores_[rival])) rival = y;
    }
    if (scores_[label] > scores_[rival]) return false;
    Add(label, 1);
    Add(rival, -1);
    return true;
  }

  // Returns the last weights or, for an averaged perceptron, the mean of the weights after each
  // step. Let T be the number of steps. A change at step t is part of the weights after steps t …
  // T, so its share of the mean is 1 − (t − 1)/T.
  Matrix<double> Result() const {
    Matrix<double> result = weights_.Clone();
    for (int64_t k = 0; k < weighted_.size(); ++k) {
      result.data()[k] -= weighted_.data()[k] / static_cast<double>(steps_);
    }
    return result;
  }

 private:
  // Adds sign·x to the weights of class y, where x is the current row.
  void Add(int32_t y, double sign) {
    AddTo(weights_.row(y), sign);
    if (!weighted_.empty()) AddTo(weighted_.row(y), sign * static_cast<double>(steps_ - 1));
  }

  void AddTo(double* w, double factor) {
    for (size_t k = 0; k < x_.size(); ++k) w[k] += factor * x_[k];
  }

  ConstMatrixView<double> rows_;
  // The current row, with the bias as its last number.
  std::vector<double> x_;
  std::vector<double> scores_;
  Matrix<double> weights_;
  // The sum Σ (t − 1)·change_t over the steps t, where change_t is the change of the weights at
  // step t. Empty unless the mean is needed.
  Matrix<double> weighted_;
  int64_t steps_ = 0;
};

absl::StatusOr<std::unique_ptr<const Model>> Perceptron::Train(const TrainingSet& examples,
                                                               uint64_t seed,
                                                               Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kPerceptronType));
  const int64_t n = examples.rows.rows();
  Weights weights(examples, options_);
  RowOrder order(n, seed);
  int64_t epoch = 0;
  int64_t changes = 1;
  for (; epoch < options_.epochs && changes > 0; ++epoch) {
    changes = 0;
    const std::vector<int64_t>& rows = order.Next();
    for (int64_t k = 0; k < n; ++k) {
      if (k % kRowsPerCheckpoint == 0) {
        PHIMAP_RETURN_IF_ERROR(checkpoint(
            (static_cast<double>(epoch) + static_cast<double>(k) / static_cast<double>(n)) /
            static_cast<double>(options_.epochs)));
      }
      if (weights.Learn(rows[k], examples.labels[rows[k]])) ++changes;
    }
  }
  return std::make_unique<const LinearModel>(
      SplitIntercepts(weights.Result().view(), options_.bias),
      absl::StrCat(changes, " changes in the last of ", epoch, " passes"));
}

constexpr Parameter kPerceptronParameters[] = {
    {.name = "epochs",
     .type = ParameterType::kInteger,
     .default_text = "10",
     .least = 1,
     .largest = 1e6,
     .line = "maximum number of passes over the rows"},
    {.name = "average",
     .type = ParameterType::kBoolean,
     .default_text = "false",
     .line = "use the average of the weights over all steps, not the final weights"},
    {.name = "bias",
     .default_text = "1",
     .least = 0,
     .largest = 1e6,
     .line = "value of a constant feature, whose weight gives the intercept; with 0, separators go "
             "through the origin"},
};

}  // namespace

constinit const LearnerType kPerceptronType = {
    .name = "perceptron",
    .line = "the perceptron, for any number of classes",
    .parameters = kPerceptronParameters,
    .makes_linear_head = true,
    .training_bytes = [](const ParameterValues&,
                         const TrainingShape& shape) { return 8 * shape.rows; },
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const Perceptron>(
          PerceptronOptions{.epochs = values.Integer("epochs"),
                            .average = values.Boolean("average"),
                            .bias = values.Number("bias")});
    },
};

}  // namespace phimap
