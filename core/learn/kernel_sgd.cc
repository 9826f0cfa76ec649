#include "core/learn/kernel_sgd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/learn/kernel_models.h"
#include "core/learn/learner_type.h"
#include "core/learn/row_blocks.h"
#include "core/linalg/blas.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

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
  return MakeError(absl::StatusCode::kFailedPrecondition, "ROWS_TOO_MANY", "rows",
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

}  // namespace

absl::StatusOr<std::unique_ptr<const Model>> KernelSgd::Train(const TrainingSet& examples,
                                                              uint64_t seed,
                                                              Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate());
  return map_ != nullptr ? TrainWeights(examples, seed, checkpoint)
                         : TrainCoefficients(examples, seed, checkpoint);
}

absl::StatusOr<std::unique_ptr<const Model>> KernelSgd::TrainWeights(const TrainingSet& examples,
                                                                     uint64_t seed,
                                                                     Checkpoint checkpoint) const {
  if (examples.rows.cols() != map_->input_columns()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "COLUMNS_MISMATCH", "rows",
                     absl::StrCat("the map takes rows of ", map_->input_columns(), " columns, got ",
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

namespace {

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

extern const LearnerType kKernelSgdType;
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
