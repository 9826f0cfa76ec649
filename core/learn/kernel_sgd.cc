// Logistic regression in φ-space by stochastic gradient descent. The four strategies are those of
// the Cornell lecture notes on kernels.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {

extern const LearnerType kKernelSgdType;

namespace {

// Maximum number of rows for which the Gram matrix is stored. The matrix then takes 2 GiB.
constexpr int64_t kMaxGramRows = 16384;
// Maximum number of stored feature values. They then take 2 GiB.
constexpr int64_t kMaxStoredFeatures = int64_t{1} << 28;

// Ways to obtain inner products. These are the four ways of the Cornell lecture, and all give the
// same model. The table uses these letters: n is the number of rows, T the number of steps, D the
// number of features, c_φ the cost of computing the features of one row, and c_K the cost of one
// kernel value. Memory is counted in numbers.
//
//   strategy           time             memory   stores
//   features           T·c_φ + T·D      D        w; computes the features of each drawn row
//   stored_features    n·c_φ + T·D      n·D      w and the features of all rows
//   kernel             T·n·c_K          n        one coefficient per row; computes K(x_i, ·) when
//                                                row i is drawn
//   gram               n²·c_K + T·n     n²       one coefficient per row, and the Gram matrix
//
// The first two strategies need explicit features. The lecture lists these two once more with
// features that only approximate the kernel, which makes six strategies; here they are the same
// two.
enum class SgdStrategy { kFeatures, kStoredFeatures, kKernel, kGram };

struct KernelSgdOptions {
  SgdStrategy strategy = SgdStrategy::kGram;
  double rate = 0.1;
  int64_t epochs = 20;
};

// Logistic regression in φ-space. For each class, a weight vector w is trained to separate the
// class from all others, with labels y = ±1. (With two classes, there is only one such problem.)
// Gradient descent begins with w = 0 and takes T = epochs·n steps, where n is the number of rows:
//
//    w ← w − rate · ℓ'(w·φ(x_i); y_i) φ(x_i),     ℓ'(s; y) = −y/(1 + e^{ys})
//
// Here ℓ' is the derivative of the logistic loss at the score s. The row number i is drawn
// uniformly from StreamId::kSgdRows, with the same draws for all classes. The scores of the model
// are w·φ(x). There is no intercept and no regularisation, as in the lecture.
//
// The strategies with explicit features store w itself. The strategies with the kernel store
// coefficients u such that w = Σ u_i φ(x_i), and their models store the rows whose coefficients are
// not 0. For the same seed, the scores of all strategies are equal up to round-off.
//
// Errors: FAILED_PRECONDITION (ROWS_TOO_MANY) if strategy gram has more than kMaxGramRows rows, or
// if strategy stored_features has more than kMaxStoredFeatures feature values. The other two
// strategies have no such limit.
class KernelSgd : public Learner {
 public:
  // Constructor for the strategies kernel and gram.
  KernelSgd(const KernelSgdOptions& options, KernelProgram kernel)
      : options_(options), kernel_(std::move(kernel)) {}
  // Constructor for the strategies features and stored_features.
  KernelSgd(const KernelSgdOptions& options, std::shared_ptr<const RowMap> map)
      : options_(options), map_(std::move(map)) {}

  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  absl::StatusOr<std::unique_ptr<const Model>> TrainWeights(const TrainingSet& examples,
                                                            uint64_t seed,
                                                            Checkpoint checkpoint) const;
  absl::StatusOr<std::unique_ptr<const Model>> TrainCoefficients(const TrainingSet& examples,
                                                                 uint64_t seed,
                                                                 Checkpoint checkpoint) const;

  const KernelSgdOptions options_;
  const KernelProgram kernel_;
  const std::shared_ptr<const RowMap> map_;
};

// A model with one separator per class. A separator tells its class from all others. Two classes
// have a single separator; if its value is s, the scores are −s and s.
class OneAgainstRestModel : public Model {
 public:
  OneAgainstRestModel(int64_t columns, int32_t class_count, std::string summary)
      : columns_(columns), class_count_(class_count), summary_(std::move(summary)) {}

  int64_t columns() const override { return columns_; }
  int32_t class_count() const override { return class_count_; }
  std::string Summary() const override { return summary_; }
  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override;

 private:
  // Sets values_ij to the value of separator j on row i. Called with at most 256 rows.
  virtual absl::Status Values(ConstMatrixView<double> rows, MatrixView<double> values) const = 0;

  int64_t columns_;
  int32_t class_count_;
  std::string summary_;
};

// A model that scores a row x by w·F(x). The features F(x) are computed by `map`. `weights` has one
// row w per separator.
class MappedModel : public OneAgainstRestModel {
 public:
  MappedModel(std::shared_ptr<const RowMap> map, Matrix<double> weights, int32_t class_count,
              std::string summary)
      : OneAgainstRestModel(map->input_columns(), class_count, std::move(summary)),
        map_(std::move(map)),
        weights_(std::move(weights)) {}

 private:
  absl::Status Values(ConstMatrixView<double> rows, MatrixView<double> values) const override;

  std::shared_ptr<const RowMap> map_;
  Matrix<double> weights_;
};

// A model that scores a row x by Σ_i u_i K(x_i, x), where the x_i are the given rows.
// `coefficients` has one row u per separator and one column per row x_i.
class ExpansionModel : public OneAgainstRestModel {
 public:
  ExpansionModel(KernelProgram kernel, Matrix<double> rows, Matrix<double> coefficients,
                 int32_t class_count, std::string summary);

 private:
  absl::Status Values(ConstMatrixView<double> rows, MatrixView<double> values) const override;

  KernelProgram kernel_;
  Matrix<double> rows_;
  std::vector<double> norms_;
  Matrix<double> coefficients_;
};

absl::Status OneAgainstRestModel::Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                                         Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
  const int64_t n = rows.rows();
  const int64_t first_class = class_count_ == 2 ? 1 : 0;
  for (int64_t first = 0; first < n; first += kKernelRows) {
    PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(first) / static_cast<double>(n)));
    const int64_t count = std::min(kKernelRows, n - first);
    const MatrixView<double> out =
        scores.Block(first, first_class, count, class_count_ - first_class);
    PHIMAP_RETURN_IF_ERROR(Values(rows.Rows(first, count), out));
    if (first_class == 0) continue;
    for (int64_t i = first; i < first + count; ++i) scores(i, 0) = -scores(i, 1);
  }
  return absl::OkStatus();
}

absl::Status MappedModel::Values(ConstMatrixView<double> rows, MatrixView<double> values) const {
  Matrix<double> features = Matrix<double>::Uninit(rows.rows(), map_->output_columns());
  PHIMAP_RETURN_IF_ERROR(map_->Map(rows, features.view()));
  MultiplyTransposed(1, features.view(), weights_.view(), 0, values);
  return absl::OkStatus();
}

ExpansionModel::ExpansionModel(KernelProgram kernel, Matrix<double> rows,
                               Matrix<double> coefficients, int32_t class_count,
                               std::string summary)
    : OneAgainstRestModel(rows.cols(), class_count, std::move(summary)),
      kernel_(std::move(kernel)),
      rows_(std::move(rows)),
      norms_(SquaredNorms(rows_.view())),
      coefficients_(std::move(coefficients)) {}

absl::Status ExpansionModel::Values(ConstMatrixView<double> rows, MatrixView<double> values) const {
  Matrix<double> kernel = Matrix<double>::Uninit(rows.rows(), rows_.rows());
  KernelBlock(kernel_, rows, SquaredNorms(rows), rows_.view(), norms_, kernel.view());
  MultiplyTransposed(1, kernel.view(), coefficients_.view(), 0, values);
  return absl::OkStatus();
}

// Share of the work before the first step, if the Gram matrix or the features are stored. It is a
// guess, used only for progress reports.
constexpr double kStoringShare = 0.5;

int64_t SeparatorCount(const TrainingSet& examples) {
  return examples.class_count == 2 ? 1 : examples.class_count;
}

// Returns the factor −rate·ℓ'(s; y) of a gradient step, which adds this factor times the drawn row
// to w. ℓ' is the derivative of the loss, s = `score` is the score of the drawn row, and y is its
// label.
double StepLength(double rate, double score, double y) {
  return rate * y / (1 + std::exp(y * score));
}

// Takes epochs·n steps. In each step, calls `step` with the number of a randomly drawn row.
absl::Status TakeSteps(int64_t n, int64_t epochs, uint64_t seed, double begin,
                       Checkpoint checkpoint, absl::FunctionRef<absl::Status(int64_t row)> step) {
  const RandomStream stream(seed, StreamId::kSgdRows);
  const auto steps = static_cast<uint64_t>(epochs) * static_cast<uint64_t>(n);
  for (uint64_t t = 0; t < steps; ++t) {
    if (t % 64 == 0) {
      const double share = static_cast<double>(t) / static_cast<double>(steps);
      PHIMAP_RETURN_IF_ERROR(checkpoint(begin + (1 - begin) * share));
    }
    PHIMAP_RETURN_IF_ERROR(
        step(static_cast<int64_t>(stream.UniformBelow(t, static_cast<uint64_t>(n)))));
  }
  return absl::OkStatus();
}

absl::Status TooMuch(absl::string_view what, int64_t limit, int64_t actual,
                     absl::string_view instead) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kRowsTooMany, "rows",
                   absl::StrCat(what, " is at most ", limit, ", got ", actual, "; ", instead,
                                " has no such limit"),
                   {{"limit", absl::StrCat(limit)}, {"actual", absl::StrCat(actual)}});
}

// Returns the features of every row, computed in blocks.
absl::StatusOr<Matrix<double>> StoreFeatures(const RowMap& map, ConstMatrixView<double> rows,
                                             Checkpoint checkpoint) {
  const int64_t n = rows.rows();
  if (n > kMaxStoredFeatures / map.output_columns()) {
    return TooMuch("kernel_sgd(strategy=stored_features): the number of stored features",
                   kMaxStoredFeatures, n * map.output_columns(), "strategy=features");
  }
  Matrix<double> features = Matrix<double>::Uninit(n, map.output_columns());
  for (int64_t first = 0; first < n; first += kKernelRows) {
    PHIMAP_RETURN_IF_ERROR(
        checkpoint(kStoringShare * static_cast<double>(first) / static_cast<double>(n)));
    const int64_t count = std::min(kKernelRows, n - first);
    PHIMAP_RETURN_IF_ERROR(map.Map(rows.Rows(first, count), features.view().Rows(first, count)));
  }
  return features;
}

// Copies the lower triangle to the upper triangle, in square blocks. A copy row by row would touch
// another memory page for each number that it reads: it took 3.7 s for 14,000 rows, with no
// checkpoint in between.
absl::Status Mirror(MatrixView<double> gram, Checkpoint checkpoint) {
  constexpr int64_t kSquare = 64;
  const int64_t n = gram.rows();
  for (int64_t row = 0; row < n; row += kSquare) {
    PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(row) / static_cast<double>(n)));
    for (int64_t column = row; column < n; column += kSquare) {
      for (int64_t i = row; i < std::min(row + kSquare, n); ++i) {
        for (int64_t j = std::max(column, i + 1); j < std::min(column + kSquare, n); ++j) {
          gram(i, j) = gram(j, i);
        }
      }
    }
  }
  return absl::OkStatus();
}

// Computes K for every pair of rows. Fills both triangles, because each step reads a whole row.
absl::StatusOr<Matrix<double>> StoreGram(const KernelProgram& kernel, ConstMatrixView<double> rows,
                                         Checkpoint checkpoint) {
  const int64_t n = rows.rows();
  if (n > kMaxGramRows) {
    return TooMuch("kernel_sgd(strategy=gram): the number of rows of the Gram matrix", kMaxGramRows,
                   n, "strategy=kernel");
  }
  Matrix<double> gram = Matrix<double>::Uninit(n, n);
  const auto computed = [&](double fraction) { return checkpoint(0.9 * kStoringShare * fraction); };
  PHIMAP_RETURN_IF_ERROR(KernelGram(kernel, rows, gram.view(), computed));
  const auto mirrored = [&](double fraction) {
    return checkpoint((0.9 + 0.1 * fraction) * kStoringShare);
  };
  PHIMAP_RETURN_IF_ERROR(Mirror(gram.view(), mirrored));
  return gram;
}

// Returns the numbers of the rows that were drawn at least once. All other rows have coefficient 0.
std::vector<int64_t> DrawnRows(const Matrix<double>& coefficients) {
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < coefficients.cols(); ++i) {
    bool any = false;
    for (int64_t s = 0; s < coefficients.rows(); ++s) any = any || coefficients(s, i) != 0;
    if (any) drawn.push_back(i);
  }
  return drawn;
}

absl::StatusOr<std::unique_ptr<const Model>> KernelSgd::Train(const TrainingSet& examples,
                                                              uint64_t seed,
                                                              Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kKernelSgdType));
  return map_ != nullptr ? TrainWeights(examples, seed, checkpoint)
                         : TrainCoefficients(examples, seed, checkpoint);
}

absl::StatusOr<std::unique_ptr<const Model>> KernelSgd::TrainWeights(const TrainingSet& examples,
                                                                     uint64_t seed,
                                                                     Checkpoint checkpoint) const {
  if (examples.rows.cols() != map_->input_columns()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch, "rows",
        absl::StrCat("the map takes rows of ", CountOf(map_->input_columns(), "column"), ", got ",
                     examples.rows.cols()));
  }
  const bool stored = options_.strategy == SgdStrategy::kStoredFeatures;
  const int64_t width = map_->output_columns();
  Matrix<double> features(stored ? 0 : 1, width);
  if (stored) {
    PHIMAP_ASSIGN_OR_RETURN(features, StoreFeatures(*map_, examples.rows, checkpoint));
  }
  Matrix<double> weights(SeparatorCount(examples), width);
  std::vector<double> scores(static_cast<size_t>(weights.rows()));
  const auto step = [&](int64_t i) -> absl::Status {
    if (!stored) PHIMAP_RETURN_IF_ERROR(map_->Map(examples.rows.Rows(i, 1), features.view()));
    const double* phi = features.row(stored ? i : 0);
    MultiplyVector(1, weights.view(), phi, 0, scores.data(), 1);
    for (int64_t s = 0; s < weights.rows(); ++s) {
      const int64_t positive = weights.rows() == 1 ? 1 : s;
      const double y = examples.labels[i] == positive ? 1 : -1;
      const double length = StepLength(options_.rate, scores[s], y);
      double* w = weights.row(s);
      for (int64_t k = 0; k < width; ++k) w[k] += length * phi[k];
    }
    return absl::OkStatus();
  };
  const int64_t n = examples.rows.rows();
  PHIMAP_RETURN_IF_ERROR(
      TakeSteps(n, options_.epochs, seed, stored ? kStoringShare : 0, checkpoint, step));
  return std::make_unique<const MappedModel>(
      map_, std::move(weights), examples.class_count,
      absl::StrCat(options_.epochs * n, " steps on ", width, " features"));
}

absl::StatusOr<std::unique_ptr<const Model>> KernelSgd::TrainCoefficients(
    const TrainingSet& examples, uint64_t seed, Checkpoint checkpoint) const {
  const bool stored = options_.strategy == SgdStrategy::kGram;
  const int64_t n = examples.rows.rows();
  const std::vector<double> norms = SquaredNorms(examples.rows);
  Matrix<double> kernel(stored ? 0 : 1, n);
  if (stored) {
    PHIMAP_ASSIGN_OR_RETURN(kernel, StoreGram(kernel_, examples.rows, checkpoint));
  }
  Matrix<double> coefficients(SeparatorCount(examples), n);
  std::vector<double> scores(static_cast<size_t>(coefficients.rows()));
  const auto step = [&](int64_t i) {
    if (!stored) {
      KernelBlock(kernel_, examples.rows.Rows(i, 1), {norms[i]}, examples.rows, norms,
                  kernel.view());
    }
    MultiplyVector(1, coefficients.view(), kernel.row(stored ? i : 0), 0, scores.data(), 1);
    for (int64_t s = 0; s < coefficients.rows(); ++s) {
      const int64_t positive = coefficients.rows() == 1 ? 1 : s;
      const double y = examples.labels[i] == positive ? 1 : -1;
      coefficients(s, i) += StepLength(options_.rate, scores[s], y);
    }
    return absl::OkStatus();
  };
  PHIMAP_RETURN_IF_ERROR(
      TakeSteps(n, options_.epochs, seed, stored ? kStoringShare : 0, checkpoint, step));
  const std::vector<int64_t> drawn = DrawnRows(coefficients);
  Matrix<double> rows(static_cast<int64_t>(drawn.size()), examples.rows.cols());
  Matrix<double> kept(coefficients.rows(), rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(examples.rows.row(drawn[i]), rows.cols(), rows.row(i));
    for (int64_t s = 0; s < kept.rows(); ++s) kept(s, i) = coefficients(s, drawn[i]);
  }
  return std::make_unique<const ExpansionModel>(
      kernel_, std::move(rows), std::move(kept), examples.class_count,
      absl::StrCat(options_.epochs * n, " steps on ", drawn.size(), " rows"));
}

// Names of the strategies in learner texts, in the order of SgdStrategy.
constexpr absl::string_view kStrategyWords[] = {"features", "stored_features", "kernel", "gram"};

constexpr Parameter kKernelSgdParameters[] = {
    {.name = "strategy",
     .type = ParameterType::kWord,
     .default_text = "gram",
     .words = kStrategyWords,
     .line =
         "source of inner products: explicit features or kernel values, which are either stored "
         "or computed whenever they are needed"},
    {.name = "rate",
     .default_text = "0.1",
     .least = 0,
     .largest = 1e6,
     .above_least = true,
     .line = "length of a step"},
    {.name = "epochs",
     .type = ParameterType::kInteger,
     .default_text = "20",
     .least = 1,
     .largest = 1e6,
     .line = "passes over the rows"},
};

SgdStrategy StrategyOf(const ParameterValues& values) {
  return static_cast<SgdStrategy>(values.WordIndex("strategy"));
}

bool RunsOnFeatures(const ParameterValues& values) {
  return StrategyOf(values) == SgdStrategy::kFeatures ||
         StrategyOf(values) == SgdStrategy::kStoredFeatures;
}

double KernelSgdBytes(const ParameterValues& values, const TrainingShape& shape) {
  // Maximum number of stored values. Training fails before it begins if more would have to be
  // stored.
  constexpr double kMostValues = 1.0 * kMaxGramRows * kMaxGramRows;
  const double n = shape.rows;
  switch (StrategyOf(values)) {
    case SgdStrategy::kFeatures:
      return 16 * shape.features * shape.classes;
    case SgdStrategy::kStoredFeatures:
      return 8 * n * shape.features + 16 * shape.features * shape.classes;
    case SgdStrategy::kKernel:
      return 16 * n * (shape.classes + 1);
    case SgdStrategy::kGram:
      return 8 * std::min(n * n, kMostValues) + 16 * n * shape.classes;
  }
  PHIMAP_CHECK(false);
}

std::unique_ptr<const Learner> MakeKernelSgd(const ParameterValues& values,
                                             const KernelInput& input) {
  const KernelSgdOptions options{.strategy = StrategyOf(values),
                                 .rate = values.Number("rate"),
                                 .epochs = values.Integer("epochs")};
  if (RunsOnFeatures(values)) return std::make_unique<const KernelSgd>(options, input.map);
  return std::make_unique<const KernelSgd>(options, KernelProgram::Compile(*input.kernel));
}

}  // namespace

constinit const LearnerType kKernelSgdType = {
    .name = "kernel_sgd",
    .line = "kernel logistic regression by stochastic gradient descent",
    .parameters = kKernelSgdParameters,
    .learns_from_kernel = true,
    .needs_row_map = RunsOnFeatures,
    .training_bytes = KernelSgdBytes,
    .make = MakeKernelSgd,
};

}  // namespace phimap
