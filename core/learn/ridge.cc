#include "core/learn/ridge.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/learn/learner_type.h"
#include "core/learn/row_order.h"
#include "core/linalg/blas.h"
#include "core/linalg/triangular_inverse.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kRidgeType;

namespace {

// What a part says of the weights: the Gram matrix, and for each score the products Φᵀt and the sum
// of squares tᵀt of targets t less their mean in the training rows, all weighted.
struct NormalEquations {
  MatrixView<double> gram;  // lower triangle
  Matrix<double> products;  // features × scores
  std::vector<double> squares;
  std::vector<double> means;
  double weight = 0;
  // Memory of `gram`, if it is not that of the moments.
  Matrix<double> scratch;
};

void EquationsOfNumbers(const RidgeMoments& moments, NormalEquations& out) {
  const RowSums& sums = moments.sums()[0];
  if (out.means.empty()) out.means = {moments.shift() + sums.targets / sums.weight};
  // t is the target less the shift, less this.
  const double mean = out.means[0] - moments.shift();
  out.weight = sums.weight;
  out.squares = {sums.squares + mean * (mean * sums.weight - 2 * sums.targets)};
  out.products = Matrix<double>(moments.features(), 1);
  for (int64_t k = 0; k < moments.features(); ++k) {
    out.products(k, 0) = sums.products[k] - mean * sums.features[k];
  }
}

void EquationsOfClasses(const RidgeMoments& moments, absl::Span<const double> class_weights,
                        NormalEquations& out) {
  const int32_t classes = moments.class_count();
  std::vector<double> all(static_cast<size_t>(moments.features()));
  for (int32_t y = 0; y < classes; ++y) {
    const RowSums& sums = moments.sums()[y];
    out.weight += class_weights[y] * sums.weight;
    for (size_t k = 0; k < all.size(); ++k) all[k] += class_weights[y] * sums.features[k];
  }
  const int32_t first_class = classes == 2 ? 1 : 0;
  const bool sets_means = out.means.empty();
  out.products = Matrix<double>(moments.features(), classes - first_class);
  for (int32_t y = first_class; y < classes; ++y) {
    const RowSums& sums = moments.sums()[y];
    const double own = class_weights[y] * sums.weight;
    if (sets_means) out.means.push_back(2 * own / out.weight - 1);
    const double mean = out.means[y - first_class];
    out.squares.push_back(own * (1 - mean) * (1 - mean) +
                          (out.weight - own) * (1 + mean) * (1 + mean));
    // Σ w·(1 − mean)·φ of the class, and Σ w·(−1 − mean)·φ of the others.
    for (size_t k = 0; k < all.size(); ++k) {
      out.products(static_cast<int64_t>(k), y - first_class) =
          2 * class_weights[y] * sums.features[k] - (1 + mean) * all[k];
    }
  }
}

// `means` are those of the training rows; empty if these are the training rows.
NormalEquations EquationsOf(RidgeMoments& moments, absl::Span<const double> class_weights,
                            std::vector<double> means) {
  NormalEquations out;
  out.means = std::move(means);
  if (moments.class_count() == 0) {
    EquationsOfNumbers(moments, out);
  } else {
    EquationsOfClasses(moments, class_weights, out);
  }
  out.gram = moments.WeightedGram(class_weights, out.scratch);
  return out;
}

double Trace(ConstMatrixView<double> m) {
  double trace = 0;
  for (int64_t k = 0; k < m.rows(); ++k) trace += m(k, k);
  return trace;
}

// Sets the lower triangle of `factor` to L with LLᵀ = G + alpha·I. Returns false if that is not
// positive definite up to rounding.
bool Factor(const NormalEquations& equations, double alpha, Matrix<double>& factor) {
  for (int64_t i = 0; i < factor.rows(); ++i) {
    std::copy_n(equations.gram.row(i), i + 1, factor.row(i));
    factor(i, i) += alpha;
  }
  return FactorPositiveDefinite(factor.view());
}

Matrix<double> WeightsBy(const Matrix<double>& factor, const NormalEquations& equations) {
  Matrix<double> weights = equations.products.Clone();
  SolveLowerTriangle(factor.view(), weights.view());
  SolveLowerTriangleTransposed(factor.view(), weights.view());
  return weights;
}

double Inner(const Matrix<double>& a, const Matrix<double>& b) {
  double sum = 0;
  for (int64_t k = 0; k < a.size(); ++k) sum += a.data()[k] * b.data()[k];
  return sum;
}

// Mean of ‖t − Φw‖² = tᵀt − 2wᵀΦᵀt + wᵀGw over rows and scores. REQUIRES: the Gram matrix has its
// upper triangle too.
double SquaredErrorOf(const Matrix<double>& weights, const NormalEquations& equations) {
  Matrix<double> image(weights.rows(), weights.cols());
  Multiply(1, equations.gram, weights.view(), 0, image.view());
  double error = Inner(weights, image) - 2 * Inner(weights, equations.products);
  for (const double squares : equations.squares) error += squares;
  return std::max(0.0, error) / equations.weight;
}

HeadVariance VarianceOf(const NormalEquations& equations, const Matrix<double>& weights,
                        double alpha, int64_t rows, ConstMatrixView<double> inverse) {
  const double unexplained = equations.squares[0] - Inner(weights, equations.products);
  const int64_t d = inverse.rows();
  HeadVariance variance{.noise = alpha,
                        .scale = std::max(0.0, unexplained) / (static_cast<double>(rows) * alpha),
                        .inverse_factor = AlignedArray<double>(d * (d + 1) / 2)};
  double* next = variance.inverse_factor.data();
  for (int64_t k = 0; k < d; ++k) next = std::copy_n(inverse.row(k) + k, d - k, next);
  return variance;
}

absl::Status TooFewRows(absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kRowsTooFew, "rows", message);
}

absl::Status CheckTask(const RidgeOptions& options, HeadTask task) {
  if (task == HeadTask::kClasses || !options.class_weight.given()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kParameterNotApplicable,
                   kClassWeightParameter.name,
                   "class_weight is for classes, and these rows have numbers");
}

absl::Status AlphaTooSmall(double alpha, const NormalEquations& equations) {
  const double least = static_cast<double>(equations.gram.rows()) * 0x1p-52 * Trace(equations.gram);
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, "alpha",
                   absl::StrCat("alpha is lost in rounding beside the Gram matrix of these ",
                                "features: expected at least about ", least, ", got ", alpha),
                   {{"expected", absl::StrCat(least)}, {"actual", absl::StrCat(alpha)}});
}

// Share of the work of Solve, in which `auto` has about twenty factorizations, and the last
// solution one or two.
constexpr double kChoosingShare = 0.9;

}  // namespace

std::vector<double> AlphaGrid(double mean_squared_length) {
  const double exponent = mean_squared_length > 0 ? std::round(std::log10(mean_squared_length)) : 0;
  std::vector<double> grid;
  for (int k = -4; k <= 4; ++k) {
    for (const double digit : {1.0, 3.0}) {
      // A power of ten up to 10²² is exact, so the quotient or product is the number that the text
      // "3e-05" stands for.
      const double power = std::pow(10, std::abs(k + exponent));
      grid.push_back(k + exponent < 0 ? digit / power : digit * power);
    }
  }
  return grid;
}

RidgeTraining::RidgeTraining(RidgeOptions options, HeadTask task, int64_t features,
                             int64_t limit_bytes)
    : options_(std::move(options)),
      task_(task),
      limit_bytes_(limit_bytes),
      train_(task, features, options_.class_weight.given()),
      validate_(task, features, options_.class_weight.given()) {}

double RidgeTraining::Bytes(double features, double classes, bool class_weights) {
  // The factor, and its inverse, which is packed too, or two weighted Gram matrices.
  const double square = 8 * features * features;
  return 2 * RidgeMoments::Bytes(features, classes, class_weights) + 3 * square +
         8 * 5 * features * std::max(1.0, classes);
}

absl::Status RidgeTraining::CheckMemory(absl::Span<const int32_t> labels) const {
  if (!options_.class_weight.given() || labels.empty()) return absl::OkStatus();
  const int32_t classes = *std::max_element(labels.begin(), labels.end()) + 1;
  if (classes <= std::max(train_.class_count(), validate_.class_count())) return absl::OkStatus();
  const double bytes = Bytes(static_cast<double>(train_.features()), classes, true);
  if (bytes <= static_cast<double>(limit_bytes_)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kResourceExhausted, reason::kBuildMemoryFull, "class_weight",
      absl::StrCat("ridge keeps a Gram matrix of each class for class_weight: ", classes,
                   " classes of ", train_.features(), " features need ",
                   static_cast<int64_t>(bytes), " bytes, and the limit is ", limit_bytes_,
                   "; leave class_weight out, or give a weight with each row"),
      {{"actual", absl::StrCat(static_cast<int64_t>(bytes))},
       {"limit", absl::StrCat(limit_bytes_)}});
}

template <typename T>
absl::Status RidgeTraining::Add(Part part, ConstMatrixView<T> rows, const RowLabels& known,
                                const TileControl& control) {
  PHIMAP_RETURN_IF_ERROR(CheckMemory(known.labels));
  return (part == Part::kTrain ? train_ : validate_).Add(rows, known, control);
}

template absl::Status RidgeTraining::Add(Part, ConstMatrixView<float>, const RowLabels&,
                                         const TileControl&);
template absl::Status RidgeTraining::Add(Part, ConstMatrixView<double>, const RowLabels&,
                                         const TileControl&);

absl::StatusOr<std::vector<double>> RidgeTraining::WeightsOfClasses() const {
  if (task_ == HeadTask::kNumbers) return std::vector<double>{1.0};
  std::vector<int64_t> rows;
  for (const RowSums& sums : train_.sums()) rows.push_back(sums.rows);
  return options_.class_weight.Of(rows);
}

absl::Status RidgeTraining::ChooseAlpha(RidgeFit& fit, Checkpoint checkpoint) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> class_weights, WeightsOfClasses());
  const NormalEquations train = EquationsOf(train_, class_weights, {});
  const NormalEquations validate = EquationsOf(validate_, class_weights, train.means);
  for (int64_t i = 0; i < validate.gram.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) validate.gram(j, i) = validate.gram(i, j);
  }
  std::vector<double> grid = AlphaGrid(Trace(train.gram) / train.weight);
  std::reverse(grid.begin(), grid.end());
  Matrix<double> factor(train_.features(), train_.features());
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < grid.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(
        checkpoint(kChoosingShare * static_cast<double>(i) / static_cast<double>(grid.size())));
    if (!Factor(train, grid[i], factor)) break;  // as would be smaller ones
    const double error = SquaredErrorOf(WeightsBy(factor, train), validate);
    fit.trials.push_back({grid[i], error});
    if (!(error < least)) continue;
    least = error;
    fit.alpha = grid[i];
  }
  return fit.trials.empty() ? AlphaTooSmall(grid[0], train) : absl::OkStatus();
}

absl::StatusOr<RidgeFit> RidgeTraining::Solve(const Finish& finish, Checkpoint checkpoint) {
  PHIMAP_RETURN_IF_ERROR(CheckTask(options_, task_));
  const auto unreported = [&](double) { return checkpoint(0); };
  for (RidgeMoments* moments : {&train_, &validate_}) {
    PHIMAP_RETURN_IF_ERROR(moments->Flush(unreported));
    if (task_ == HeadTask::kNumbers) continue;
    std::vector<int32_t> numbers(finish.class_numbers.begin(), finish.class_numbers.end());
    if (numbers.empty()) {
      for (int32_t y = 0; y < finish.class_count; ++y) numbers.push_back(y);
    }
    moments->Renumber(numbers, finish.class_count);
  }
  if (train_.rows() == 0) return TooFewRows("expected a row to learn from, got none");
  RidgeFit fit;
  if (options_.alpha.has_value()) {
    fit.alpha = *options_.alpha;
  } else if (validate_.rows() == 0) {
    return TooFewRows(
        "alpha=auto is chosen by the errors on validation rows, and there are none; give alpha as "
        "a number");
  } else {
    PHIMAP_RETURN_IF_ERROR(ChooseAlpha(fit, checkpoint));
  }
  PHIMAP_RETURN_IF_ERROR(checkpoint(kChoosingShare));
  if (finish.learn_from_validation) train_.Merge(validate_);
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> class_weights, WeightsOfClasses());
  NormalEquations equations = EquationsOf(train_, class_weights, {});
  Matrix<double> factor(train_.features(), train_.features());
  if (!Factor(equations, fit.alpha, factor)) return AlphaTooSmall(fit.alpha, equations);
  fit.scores.weights = WeightsBy(factor, equations);
  fit.scores.intercepts = equations.means;
  if (!finish.variance || task_ != HeadTask::kNumbers) return fit;
  const auto part = [&](double share) {
    return checkpoint(kChoosingShare + (1 - kChoosingShare) * share);
  };
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> inverse,
                          TransposedInverseOfLowerTriangle(factor.view(), part));
  fit.variance =
      VarianceOf(equations, fit.scores.weights, fit.alpha, train_.rows(), inverse.view());
  return fit;
}

namespace {

// Share of the rows by which the learner chooses alpha. The model learns from all rows.
constexpr double kValidationShare = 0.2;
// Rows that are added between two checkpoints.
constexpr int64_t kRowsPerRidgeCheckpoint = 64;

// Ridge regression on rows in memory. `auto` chooses alpha by a random fifth of the rows.
class Ridge : public Learner {
 public:
  explicit Ridge(RidgeOptions options) : options_(std::move(options)) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const RidgeOptions options_;
};

// The weight of each row times that of its class, so that one Gram matrix is enough.
absl::StatusOr<std::vector<double>> RowWeights(const TrainingSet& examples,
                                               const ClassWeight& class_weight) {
  std::vector<double> weights(static_cast<size_t>(examples.rows.rows()), 1.0);
  if (!examples.weights.empty()) {
    std::copy(examples.weights.begin(), examples.weights.end(), weights.begin());
  }
  if (examples.task() == HeadTask::kNumbers) return weights;
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> of_classes,
                          class_weight.Of(RowsOfClasses(examples.labels, examples.class_count)));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] *= of_classes[examples.labels[i]];
  return weights;
}

// The weights for classes: with two, that of class 0 is opposite to that of class 1.
LinearWeights ToLinear(const ScoreWeights& scores, HeadTask task) {
  const int64_t columns = scores.weights.rows();
  const int64_t count = scores.weights.cols();
  const bool two_classes = task == HeadTask::kClasses && count == 1;
  LinearWeights out{.weights = Matrix<double>(two_classes ? 2 : count, columns),
                    .intercepts = scores.intercepts,
                    .bias = 1};
  for (int64_t y = 0; y < out.weights.rows(); ++y) {
    for (int64_t k = 0; k < columns; ++k) {
      out.weights(y, k) =
          two_classes ? (y == 0 ? -1 : 1) * scores.weights(k, 0) : scores.weights(k, y);
    }
  }
  if (two_classes) out.intercepts = {-scores.intercepts[0], scores.intercepts[0]};
  return out;
}

absl::StatusOr<std::unique_ptr<const Model>> Ridge::Train(const TrainingSet& examples,
                                                          uint64_t seed,
                                                          Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kRidgeType));
  const int64_t n = examples.rows.rows();
  const bool chooses = !options_.alpha.has_value();
  if (chooses && n < 2) {
    return TooFewRows("alpha=auto needs 2 rows, one to learn from and one to choose by, got 1");
  }
  const HeadTask task = examples.task();
  PHIMAP_RETURN_IF_ERROR(CheckTask(options_, task));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> weights,
                          RowWeights(examples, options_.class_weight));
  RidgeTraining training({.alpha = options_.alpha}, task, examples.rows.cols());
  const auto validated = std::max<int64_t>(
      chooses ? 1 : 0,
      static_cast<int64_t>(chooses ? kValidationShare * static_cast<double>(n) : 0));
  RowOrder order(n, seed);
  const std::vector<int64_t>& rows = order.Next();
  for (int64_t k = 0; k < n; ++k) {
    // Half of the work, as far as anyone can tell before the solution.
    const double done = static_cast<double>(k) / static_cast<double>(2 * n);
    const auto part = [&](double) { return checkpoint(done); };
    if (k % kRowsPerRidgeCheckpoint == 0) PHIMAP_RETURN_IF_ERROR(checkpoint(done));
    const auto i = static_cast<size_t>(rows[k]);
    RowLabels known{.weights = absl::MakeConstSpan(weights).subspan(i, 1)};
    if (task == HeadTask::kNumbers) {
      known.targets = examples.targets.subspan(i, 1);
    } else {
      known.labels = examples.labels.subspan(i, 1);
    }
    PHIMAP_RETURN_IF_ERROR(
        training.Add(k < validated ? RidgeTraining::Part::kValidate : RidgeTraining::Part::kTrain,
                     examples.rows.Rows(rows[k], 1), known, part));
  }
  const auto rest = [&](double share) { return checkpoint((1 + share) / 2); };
  PHIMAP_ASSIGN_OR_RETURN(const RidgeFit fit,
                          training.Solve({.class_count = examples.class_count}, rest));
  std::string summary = absl::StrCat("alpha=", NumberToText(fit.alpha));
  if (chooses) {
    absl::StrAppend(&summary, ", the best of ", fit.trials.size(), " on ", validated, " rows");
  }
  return std::make_unique<const LinearModel>(ToLinear(fit.scores, task), std::move(summary));
}

constexpr absl::string_view kAlphaWords[] = {"auto"};
constexpr Parameter kRidgeParameters[] = {
    {.name = "alpha",
     .default_text = "auto",
     .least = 0,
     .largest = 1e12,
     .above_least = true,
     .words = kAlphaWords,
     .line = "weight of ‖w‖² relative to the rows' squared errors; auto tries 1 and 3 times powers "
             "of ten on validation rows"},
    kClassWeightParameter,
};

RidgeOptions OptionsOf(const ParameterValues& values) {
  RidgeOptions options{.alpha = values.Number("alpha"), .class_weight = ClassWeight(values)};
  if (!values.Word("alpha").empty()) options.alpha = std::nullopt;
  return options;
}

}  // namespace

constinit const LearnerType kRidgeType = {
    .name = "ridge",
    .line = "ridge regression, for classes and numbers, in one pass over any number of rows",
    .parameters = kRidgeParameters,
    .learns_numbers = true,
    .makes_linear_head = true,
    .takes_row_weights = true,
    .training_bytes =
        [](const ParameterValues&, const TrainingShape& shape) {
          return 16 * shape.rows +
                 RidgeTraining::Bytes(shape.columns, shape.classes, /*class_weights=*/false);
        },
    .make = [](const ParameterValues& values,
               const KernelInput&) -> std::unique_ptr<const Learner> {
      return std::make_unique<const Ridge>(OptionsOf(values));
    },
    .begin_one_pass =
        [](const ParameterValues& values, HeadTask task, int64_t features, int64_t limit_bytes) {
          return std::make_unique<RidgeTraining>(OptionsOf(values), task, features, limit_bytes);
        },
};

}  // namespace phimap
