// Balanced Winnow: multiplicative updates on two copies of each feature.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/learn/row_order.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kWinnowType;

namespace {

struct WinnowOptions {
  double rate = 0.1;
  double threshold = 0;
  int64_t epochs = 10;
  double bias = 1;
};

// Balanced Winnow. For each class, weights are trained to separate the class from all others, with
// labels y = ±1. (With two classes, there is only one such problem.)
//
// Inputs: x stands for the row with each column divided by the column's largest magnitude in the
// training rows. The exponents below depend on the scale, so this division is necessary. Unless
// `bias` is 0, a last column of 1 is appended. The resulting model is linear in the unscaled rows.
//
// Training: each feature k has two positive weights, u⁺_k and u⁻_k, which begin at 1. Training
// makes at most `epochs` passes over the rows, each in a new random order (RowOrder). The score of
// a row is Σ (u⁺_k − u⁻_k)·x_k − threshold. A row is a mistake if y times its score is at most 0.
// Each mistake multiplies u⁺_k by exp(rate·y·x_k) and u⁻_k by exp(−rate·y·x_k), for all k. Training
// ends early after a pass without a mistake.
//
// Range: the product u⁺_k·u⁻_k stays 1. So the difference u⁺_k − u⁻_k is 2·sinh(z_k), where z_k is
// the sum of rate·y·x_k over the mistakes. z_k is kept within ±300, so no weight exceeds e^300,
// about 1e130.
//
// Source: Littlestone 1988 (Winnow, exponents of 0 and ±1). The balanced form is that of Balcan,
//         Blum, Vempala 2006, section 6. The theory for real x is that of EG±, Kivinen, Warmuth
//         1997.
// Cost:   epochs · n·L·p multiplications for n rows, L classes and p columns, and p exponentials
//         per mistake.
class Winnow : public Learner {
 public:
  explicit Winnow(const WinnowOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const WinnowOptions options_;
};

constexpr int64_t kRowsPerCheckpoint = 64;
constexpr double kMaxExponent = 300;

// Returns the largest magnitude of each column; 1 for a column of zeros.
std::vector<double> Scales(ConstMatrixView<double> rows) {
  std::vector<double> scales(static_cast<size_t>(rows.cols()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      scales[k] = std::max(scales[k], std::abs(rows(i, k)));
    }
  }
  for (double& scale : scales) scale = scale > 0 ? scale : 1;
  return scales;
}

class Weights {
 public:
  Weights(const TrainingSet& examples, const WinnowOptions& options)
      : rows_(examples.rows),
        options_(options),
        first_class_(examples.class_count == 2 ? 1 : 0),
        scales_(Scales(rows_)),
        x_(scales_.size() + (options.bias > 0 ? 1 : 0), 1),
        scores_(static_cast<size_t>(examples.class_count - first_class_)),
        exponents_(static_cast<int64_t>(scores_.size()), static_cast<int64_t>(x_.size())),
        weights_(exponents_.rows(), exponents_.cols()) {}

  // Applies the rule to row i for every class. Returns the number of classes for which the row was
  // a mistake.
  int64_t Learn(int64_t i, int32_t label) {
    for (size_t k = 0; k < scales_.size(); ++k) x_[k] = rows_(i, k) / scales_[k];
    MultiplyVector(1, weights_.view(), x_.data(), 0, scores_.data(), 1);
    int64_t mistakes = 0;
    for (int32_t problem = 0; problem < static_cast<int32_t>(scores_.size()); ++problem) {
      const double y = label == problem + first_class_ ? 1 : -1;
      if (y * (scores_[problem] - options_.threshold) > 0) continue;
      ++mistakes;
      Update(problem, y);
    }
    return mistakes;
  }

  // Returns the weights for unscaled rows.
  LinearWeights Result() const {
    // A threshold is an intercept too. If the options have no bias, the threshold is treated as the
    // weight of a bias of 1.
    const double bias = options_.bias > 0 || options_.threshold == 0 ? options_.bias : 1;
    LinearWeights result{
        .weights = Matrix<double>(weights_.rows() + first_class_, rows_.cols()),
        .intercepts = std::vector<double>(static_cast<size_t>(weights_.rows() + first_class_)),
        .bias = bias};
    for (int64_t problem = 0; problem < weights_.rows(); ++problem) {
      const double* w = weights_.row(problem);
      const int64_t y = problem + first_class_;
      for (int64_t k = 0; k < rows_.cols(); ++k) result.weights(y, k) = w[k] / scales_[k];
      result.intercepts[y] = (options_.bias > 0 ? w[rows_.cols()] : 0) - options_.threshold;
    }
    if (first_class_ == 0) return result;
    for (int64_t k = 0; k < rows_.cols(); ++k) result.weights(0, k) = -result.weights(1, k);
    result.intercepts[0] = -result.intercepts[1];
    return result;
  }

 private:
  void Update(int64_t problem, double y) {
    double* z = exponents_.row(problem);
    double* w = weights_.row(problem);
    for (size_t k = 0; k < x_.size(); ++k) {
      z[k] = std::clamp(z[k] + options_.rate * y * x_[k], -kMaxExponent, kMaxExponent);
      w[k] = 2 * std::sinh(z[k]);
    }
  }

  ConstMatrixView<double> rows_;
  const WinnowOptions& options_;
  // Two classes are one problem: class 1 against class 0.
  int32_t first_class_;
  std::vector<double> scales_;
  std::vector<double> x_;
  std::vector<double> scores_;
  Matrix<double> exponents_;
  Matrix<double> weights_;
};

absl::StatusOr<std::unique_ptr<const Model>> Winnow::Train(const TrainingSet& examples,
                                                           uint64_t seed,
                                                           Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kWinnowType));
  const int64_t n = examples.rows.rows();
  Weights weights(examples, options_);
  RowOrder order(n, seed);
  int64_t epoch = 0;
  int64_t mistakes = 1;
  for (; epoch < options_.epochs && mistakes > 0; ++epoch) {
    mistakes = 0;
    const std::vector<int64_t>& rows = order.Next();
    for (int64_t k = 0; k < n; ++k) {
      if (k % kRowsPerCheckpoint == 0) {
        const double passes = static_cast<double>(epoch) + static_cast<double>(k) / n;
        PHIMAP_RETURN_IF_ERROR(checkpoint(passes / static_cast<double>(options_.epochs)));
      }
      mistakes += weights.Learn(rows[k], examples.labels[rows[k]]);
    }
  }
  return std::make_unique<const LinearModel>(
      weights.Result(), absl::StrCat(mistakes, " mistakes in the last of ", epoch, " passes"));
}

constexpr Parameter kWinnowParameters[] = {
    {.name = "rate",
     .default_text = "0.1",
     .least = 0,
     .largest = 1e6,
     .above_least = true,
     .line = "length of a step"},
    {.name = "threshold",
     .default_text = "0",
     .least = -1e6,
     .largest = 1e6,
     .line = "threshold that is subtracted from a class's sum"},
    {.name = "epochs",
     .type = ParameterType::kInteger,
     .default_text = "10",
     .least = 1,
     .largest = 1e6,
     .line = "maximum number of passes over the rows"},
    {.name = "bias",
     .default_text = "1",
     .least = 0,
     .largest = 1e6,
     .line = "value of a constant feature, whose weight gives the intercept; with 0, separators go "
             "through the origin"},
};

}  // namespace

constinit const LearnerType kWinnowType = {
    .name = "winnow",
    .line = "Balanced Winnow: multiplicative updates, for many features of which few matter",
    .parameters = kWinnowParameters,
    .makes_linear_head = true,
    .training_bytes = [](const ParameterValues&,
                         const TrainingShape& shape) { return 8 * shape.rows; },
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const Winnow>(WinnowOptions{.rate = values.Number("rate"),
                                                          .threshold = values.Number("threshold"),
                                                          .epochs = values.Integer("epochs"),
                                                          .bias = values.Number("bias")});
    },
};

}  // namespace phimap
