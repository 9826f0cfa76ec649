// A kernel support vector machine, trained by libsvm. It is the reference for learners on features.
#include <libsvm/svm.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/linalg/blas.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

extern const LearnerType kKernelSvmType;

namespace {

// Maximum number of rows in any two classes together.
constexpr int64_t kMaxKernelSvmRows = 8192;

struct KernelSvmOptions {
  double C = 1;
  double tolerance = 0.001;
};

// A support vector machine with a kernel. For each pair of classes, with labels y = ±1, training
// finds the weights w and the offset b that minimise
//
//   ½‖w‖² + C Σ_i max(0, 1 − y_i (w·φ(x_i) + b)).
//
// The method is sequential minimal optimisation. It ends when no pair of rows violates the
// optimality conditions by more than `tolerance`. Training draws nothing at random, so the seed is
// not used. If the kernel is not positive semidefinite, the result is only a stationary point.
//
// With two classes, let s = w·φ(x) + b be the score for class 1; the scores of the classes are −s
// and s. With more classes, the score of a class is the number of pairs that vote for it, as in
// libsvm.
//
// Errors: FAILED_PRECONDITION (ROWS_TOO_MANY) if two classes together have more than
// kMaxKernelSvmRows rows.
// Memory: 16·m² bytes, where m is the number of rows of two classes together. The kernel values are
//         computed again for each pair.
// Cancel: takes effect between pairs. Within a pair, it takes effect when libsvm next reads a
//         kernel value that is not in its cache.
class KernelSvm : public Learner {
 public:
  KernelSvm(const KernelSvmOptions& options, KernelProgram kernel)
      : options_(options), kernel_(std::move(kernel)) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const KernelSvmOptions options_;
  const KernelProgram kernel_;
};

// The support vectors of one class, and their coefficients in each pair of classes that includes
// it.
struct ClassRows {
  Matrix<double> rows;
  std::vector<double> norms;
  // coefficients(i, b) is the coefficient of row i in the pair with class b. The column of the
  // class itself is 0.
  Matrix<double> coefficients;
};

// A model with one separator for each pair of classes a < b. The separator is a function f that is
// positive for class a. It is the sum of three parts: the rows of a with the coefficients in column
// b, the rows of b with the coefficients in column a, and offsets(a, b).
class PairwiseModel : public Model {
 public:
  PairwiseModel(KernelProgram kernel, int64_t columns, std::vector<ClassRows> classes,
                Matrix<double> offsets)
      : kernel_(std::move(kernel)),
        columns_(columns),
        classes_(std::move(classes)),
        offsets_(std::move(offsets)) {}

  int64_t columns() const override { return columns_; }
  int32_t class_count() const override { return static_cast<int32_t>(classes_.size()); }
  std::string Summary() const override {
    int64_t vectors = 0;
    for (const ClassRows& one : classes_) vectors += one.rows.rows();
    return absl::StrCat(vectors, " support vectors");
  }

  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override {
    PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
    const int64_t n = rows.rows();
    for (int64_t first = 0; first < n; first += kKernelRows) {
      const int64_t count = std::min(kKernelRows, n - first);
      const auto part = [&](double fraction) {
        return checkpoint((static_cast<double>(first) + fraction * static_cast<double>(count)) /
                          static_cast<double>(n));
      };
      PHIMAP_RETURN_IF_ERROR(ScoreBlock(rows.Rows(first, count), scores.Rows(first, count), part));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ScoreBlock(ConstMatrixView<double> rows, MatrixView<double> scores,
                          Checkpoint checkpoint) const {
    const std::vector<double> norms = SquaredNorms(rows);
    const auto classes = static_cast<int64_t>(classes_.size());
    // says[a](i, b): let f be the separator of classes a and b. This is the part of f's value on
    // row i that comes from the rows of class a.
    std::vector<Matrix<double>> says;
    for (const ClassRows& one : classes_) {
      PHIMAP_RETURN_IF_ERROR(
          checkpoint(static_cast<double>(says.size()) / static_cast<double>(classes)));
      says.emplace_back(rows.rows(), classes);
      if (one.rows.rows() == 0) continue;
      Matrix<double> values = Matrix<double>::Uninit(rows.rows(), one.rows.rows());
      KernelBlock(kernel_, rows, norms, one.rows.view(), one.norms, values.view());
      Multiply(1, values.view(), one.coefficients.view(), 0, says.back().view());
    }
    for (int64_t i = 0; i < rows.rows(); ++i) Vote(says, i, scores.row(i));
    return absl::OkStatus();
  }

  void Vote(const std::vector<Matrix<double>>& says, int64_t i, double* scores) const {
    const auto classes = static_cast<int64_t>(classes_.size());
    const auto value = [&](int64_t a, int64_t b) {
      return says[a](i, b) + says[b](i, a) + offsets_(a, b);
    };
    if (classes == 2) {
      scores[0] = value(0, 1);
      scores[1] = -scores[0];
      return;
    }
    std::fill_n(scores, classes, 0.0);
    for (int64_t a = 0; a < classes; ++a) {
      for (int64_t b = a + 1; b < classes; ++b) scores[value(a, b) > 0 ? a : b] += 1;
    }
  }

  KernelProgram kernel_;
  int64_t columns_;
  std::vector<ClassRows> classes_;
  Matrix<double> offsets_;
};

constexpr int64_t kTileRows = 256;
// Share of a pair's time that computing the kernel values takes. It is a guess, used only for
// progress reports.
constexpr double kGramShare = 0.5;

// The Gram matrix in libsvm's format for a precomputed kernel: row i holds its own number i,
// counted from 1, then K(x_i, x_1), K(x_i, x_2) …
class GramNodes {
 public:
  explicit GramNodes(int64_t n) : n_(n), nodes_(static_cast<size_t>(n * (n + 1))) {
    for (int64_t i = 0; i < n; ++i) {
      rows_.push_back(nodes_.data() + i * (n + 1));
      *rows_.back() = {.index = 0, .value = static_cast<double>(i + 1)};
    }
  }

  absl::Status Fill(const KernelProgram& kernel, ConstMatrixView<double> rows,
                    Checkpoint checkpoint) {
    const std::vector<double> norms = SquaredNorms(rows);
    Matrix<double> tile = Matrix<double>::Uninit(std::min(kTileRows, n_), n_);
    for (int64_t first = 0; first < n_; first += kTileRows) {
      PHIMAP_RETURN_IF_ERROR(
          checkpoint(kGramShare * static_cast<double>(first) / static_cast<double>(n_)));
      const int64_t count = std::min(kTileRows, n_ - first);
      const std::vector<double> tile_norms(norms.begin() + first, norms.begin() + first + count);
      KernelBlock(kernel, rows.Rows(first, count), tile_norms, rows, norms,
                  tile.view().Rows(0, count));
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < n_; ++j) {
          rows_[first + i][j + 1] = {.index = static_cast<int>(j + 1), .value = tile(i, j)};
        }
      }
    }
    return absl::OkStatus();
  }

  svm_node** rows() { return rows_.data(); }

  // Sets every kernel value to NaN. Leaves the row numbers unchanged.
  void Spoil() {
    for (svm_node* row : rows_) {
      for (int64_t j = 1; j <= n_; ++j) row[j].value = std::numeric_limits<double>::quiet_NaN();
    }
  }

 private:
  int64_t n_;
  std::vector<svm_node> nodes_;
  std::vector<svm_node*> rows_;
};

// Cancels training, for which libsvm has no function of its own. But libsvm prints a dot every
// 1,000 steps, on the training thread, and reads values that we own. A LibsvmWatch turns each dot
// into a checkpoint. If the checkpoint fails, the LibsvmWatch sets the values to NaN. A comparison
// with NaN is false, so no pair of rows violates a condition, and the solver ends.
class LibsvmWatch {
 public:
  LibsvmWatch(GramNodes& nodes, Checkpoint checkpoint) : nodes_(nodes), checkpoint_(checkpoint) {
    // libsvm has a single print function for all threads. It passes the dot to the watch of the
    // calling thread.
    static std::once_flag once;
    std::call_once(once, [] { svm_set_print_string_function(&LibsvmWatch::OnText); });
    current_ = this;
  }
  ~LibsvmWatch() { current_ = nullptr; }
  LibsvmWatch(const LibsvmWatch&) = delete;
  LibsvmWatch& operator=(const LibsvmWatch&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  static void OnText(const char* text) {
    if (current_ != nullptr && text[0] == '.') current_->Look();
  }

  void Look() {
    if (!status_.ok()) return;
    // The number of steps is unknown, so the progress approaches 1 without reaching it.
    ++looks_;
    const double share = looks_ / (looks_ + 10);
    status_ = checkpoint_(kGramShare + (1 - kGramShare) * share);
    if (!status_.ok()) nodes_.Spoil();
  }

  static thread_local LibsvmWatch* current_;

  GramNodes& nodes_;
  Checkpoint checkpoint_;
  absl::Status status_;
  double looks_ = 0;
};

thread_local LibsvmWatch* LibsvmWatch::current_ = nullptr;

svm_parameter Parameters(int64_t n, double C, double tolerance) {
  svm_parameter parameters{};
  parameters.svm_type = C_SVC;
  parameters.kernel_type = PRECOMPUTED;
  parameters.C = C;
  parameters.eps = tolerance;
  parameters.shrinking = 1;
  // The cache size is in MiB: a quarter of the matrix as float32. It is small on purpose, because
  // copying a row is cheap, and a solver notices the NaNs only in rows that it reads again.
  parameters.cache_size =
      std::max(0.01, static_cast<double>(n) * static_cast<double>(n) / (1 << 20));
  return parameters;
}

struct LibsvmModelDeleter {
  void operator()(svm_model* model) const { svm_free_and_destroy_model(&model); }
};

// The separator f(x) = Σ_i coefficients_i K(x_i, x) + offset of two classes, where the x_i are the
// training rows. f is positive for the first class.
struct PairSeparator {
  // One coefficient per row: the first class's rows, then the second's. 0 for rows that are not
  // support vectors.
  std::vector<double> coefficients;
  double offset = 0;
};

// Trains a separator of two classes. `rows` is an n×p matrix; its first `positive` rows belong to
// the first class. If one class has no rows, the separator always predicts the other class.
// REQUIRES: n >= 1.
absl::StatusOr<PairSeparator> SolveSvmPair(const KernelProgram& kernel,
                                           ConstMatrixView<double> rows, int64_t positive, double C,
                                           double tolerance, Checkpoint checkpoint) {
  const int64_t n = rows.rows();
  PHIMAP_CHECK(n >= 1 && positive >= 0 && positive <= n);
  PairSeparator separator{.coefficients = std::vector<double>(static_cast<size_t>(n)), .offset = 0};
  if (positive == 0 || positive == n) {
    separator.offset = positive == n ? 1 : -1;
    return separator;
  }
  GramNodes nodes(n);
  PHIMAP_RETURN_IF_ERROR(nodes.Fill(kernel, rows, checkpoint));
  // libsvm takes the label it sees first as positive.
  std::vector<double> labels(static_cast<size_t>(n), -1);
  std::fill_n(labels.begin(), positive, 1);
  const svm_problem problem{.l = static_cast<int>(n), .y = labels.data(), .x = nodes.rows()};
  const svm_parameter parameters = Parameters(n, C, tolerance);
  PHIMAP_CHECK(svm_check_parameter(&problem, &parameters) == nullptr);
  LibsvmWatch watch(nodes, checkpoint);
  const std::unique_ptr<svm_model, LibsvmModelDeleter> model(svm_train(&problem, &parameters));
  PHIMAP_RETURN_IF_ERROR(watch.status());
  for (int s = 0; s < model->l; ++s) {
    separator.coefficients[model->sv_indices[s] - 1] = model->sv_coef[0][s];
  }
  separator.offset = -model->rho[0];
  return separator;
}

// Row numbers of each class.
std::vector<std::vector<int64_t>> RowsOfClasses(const TrainingSet& examples) {
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(examples.class_count));
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    rows[examples.labels[i]].push_back(static_cast<int64_t>(i));
  }
  return rows;
}

absl::Status CheckSizes(const std::vector<std::vector<int64_t>>& classes) {
  std::vector<size_t> sizes;
  for (const std::vector<int64_t>& one : classes) sizes.push_back(one.size());
  std::partial_sort(sizes.begin(), sizes.begin() + 2, sizes.end(), std::greater<>());
  const size_t most = sizes[0] + sizes[1];
  if (most <= static_cast<size_t>(kMaxKernelSvmRows)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kRowsTooMany, "rows",
      absl::StrCat("kernel_svm holds the Gram matrix of two classes at a time, which together "
                   "may have at most ",
                   kMaxKernelSvmRows, " rows, got ", most,
                   "; kernel_sgd(strategy=kernel), or linear_svm on features, accepts more"),
      {{"limit", absl::StrCat(kMaxKernelSvmRows)}, {"actual", absl::StrCat(most)}});
}

void Copy(ConstMatrixView<double> from, const std::vector<int64_t>& rows, double* to) {
  for (const int64_t row : rows) to = std::copy_n(from.row(row), from.cols(), to);
}

// Returns the rows of a class that have a nonzero coefficient in some pair.
ClassRows SupportVectors(const TrainingSet& examples, const std::vector<int64_t>& rows,
                         const Matrix<double>& coefficients) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < coefficients.rows(); ++i) {
    const double* row = coefficients.row(i);
    if (std::any_of(row, row + coefficients.cols(), [](double c) { return c != 0; })) {
      kept.push_back(i);
    }
  }
  const auto count = static_cast<int64_t>(kept.size());
  ClassRows one{.rows = Matrix<double>(count, examples.rows.cols()),
                .norms = {},
                .coefficients = Matrix<double>(count, coefficients.cols())};
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(examples.rows.row(rows[kept[i]]), examples.rows.cols(), one.rows.row(i));
    std::copy_n(coefficients.row(kept[i]), coefficients.cols(), one.coefficients.row(i));
  }
  one.norms = SquaredNorms(one.rows.view());
  return one;
}

absl::StatusOr<std::unique_ptr<const Model>> KernelSvm::Train(const TrainingSet& examples,
                                                              uint64_t /*seed*/,
                                                              Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate(kKernelSvmType));
  const std::vector<std::vector<int64_t>> rows = RowsOfClasses(examples);
  PHIMAP_RETURN_IF_ERROR(CheckSizes(rows));
  const int64_t classes = examples.class_count;
  std::vector<Matrix<double>> coefficients;
  for (const std::vector<int64_t>& one : rows) {
    coefficients.emplace_back(static_cast<int64_t>(one.size()), classes);
  }
  Matrix<double> offsets(classes, classes);
  const double pairs = static_cast<double>(classes * (classes - 1)) / 2;
  double done = 0;
  for (int64_t a = 0; a < classes; ++a) {
    for (int64_t b = a + 1; b < classes; ++b, done += 1) {
      const auto part = [&](double fraction) { return checkpoint((done + fraction) / pairs); };
      const auto positive = static_cast<int64_t>(rows[a].size());
      const int64_t count = positive + static_cast<int64_t>(rows[b].size());
      if (count == 0) continue;
      Matrix<double> both = Matrix<double>::Uninit(count, examples.rows.cols());
      Copy(examples.rows, rows[a], both.row(0));
      Copy(examples.rows, rows[b], both.row(positive));
      PHIMAP_ASSIGN_OR_RETURN(
          const PairSeparator separator,
          SolveSvmPair(kernel_, both.view(), positive, options_.C, options_.tolerance, part));
      for (int64_t i = 0; i < positive; ++i) coefficients[a](i, b) = separator.coefficients[i];
      for (int64_t i = positive; i < count; ++i) {
        coefficients[b](i - positive, a) = separator.coefficients[i];
      }
      offsets(a, b) = separator.offset;
    }
  }
  std::vector<ClassRows> kept;
  for (int64_t y = 0; y < classes; ++y) {
    kept.push_back(SupportVectors(examples, rows[y], coefficients[y]));
  }
  return std::make_unique<const PairwiseModel>(kernel_, examples.rows.cols(), std::move(kept),
                                               std::move(offsets));
}

constexpr Parameter kKernelSvmParameters[] = {
    {.name = "C",
     .default_text = "1",
     .least = 0,
     .largest = 1e12,
     .above_least = true,
     .line = "weight of the rows' losses relative to ½‖w‖², for the separator w"},
    {.name = "tolerance",
     .default_text = "0.001",
     .least = 0,
     .largest = 1,
     .above_least = true,
     .line = "the solver's stopping tolerance"},
};

double KernelSvmBytes(const ParameterValues&, const TrainingShape& shape) {
  // Maximum number of stored values. Training fails before it begins if more would have to be
  // stored.
  constexpr double kMostValues = 1.0 * kMaxKernelSvmRows * (kMaxKernelSvmRows + 2);
  const double n = shape.rows;
  // Each kernel value takes 16 bytes, plus 1 byte for its share of libsvm's cache.
  return 17 * std::min(n * (n + 2), kMostValues) + 8 * n * shape.classes;
}

std::unique_ptr<const Learner> MakeKernelSvm(const ParameterValues& values,
                                             const KernelInput& input) {
  return std::make_unique<const KernelSvm>(
      KernelSvmOptions{.C = values.Number("C"), .tolerance = values.Number("tolerance")},
      KernelProgram::Compile(*input.kernel));
}

}  // namespace

constinit const LearnerType kKernelSvmType = {
    .name = "kernel_svm",
    .line = "kernel support vector machine (libsvm)",
    .parameters = kKernelSvmParameters,
    .learns_from_kernel = true,
    .training_bytes = KernelSvmBytes,
    .make = MakeKernelSvm,
};

}  // namespace phimap
