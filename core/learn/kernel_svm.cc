#include "core/learn/kernel_svm.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/learn/learner_type.h"
#include "core/learn/row_blocks.h"
#include "core/learn/svm_pair.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

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
      absl::StatusCode::kFailedPrecondition, "ROWS_TOO_MANY", "rows",
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

}  // namespace

absl::StatusOr<std::unique_ptr<const Model>> KernelSvm::Train(const TrainingSet& examples,
                                                              uint64_t /*seed*/,
                                                              Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(examples.Validate());
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

namespace {

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

extern const LearnerType kKernelSvmType;
constinit const LearnerType kKernelSvmType = {
    .name = "kernel_svm",
    .line = "kernel support vector machine (libsvm)",
    .parameters = kKernelSvmParameters,
    .learns_from_kernel = true,
    .training_bytes = KernelSvmBytes,
    .make = MakeKernelSvm,
};

}  // namespace phimap
