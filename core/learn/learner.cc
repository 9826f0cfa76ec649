#include "core/learn/learner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status Invalid(absl::string_view reason, absl::string_view field, absl::string_view message,
                     std::map<std::string, std::string> metadata = {}) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, field, message, std::move(metadata));
}

absl::Status CheckFinite(ConstMatrixView<double> rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const double* row = rows.row(i);
    const double* bad =
        std::find_if(row, row + rows.cols(), [](double value) { return !std::isfinite(value); });
    if (bad == row + rows.cols()) continue;
    return Invalid(
        "VALUE_NOT_FINITE", "rows",
        absl::StrCat("row ", i, ", column ", bad - row, ": expected a finite number, got ", *bad),
        {{"row", absl::StrCat(i)}, {"column", absl::StrCat(bad - row)}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TrainingSet::Validate() const {
  if (rows.rows() == 0 || rows.cols() == 0) {
    return Invalid(
        "ROWS_EMPTY", "rows",
        absl::StrCat("expected at least one row of at least one column to learn from, got ",
                     rows.rows(), " rows of ", rows.cols(), " columns"));
  }
  if (class_count < 2) {
    return Invalid("FIELD_OUT_OF_RANGE", "class_count",
                   absl::StrCat("expected at least 2 classes to tell apart, got ", class_count));
  }
  if (static_cast<int64_t>(labels.size()) != rows.rows()) {
    return Invalid(
        "LENGTH_MISMATCH", "labels",
        absl::StrCat("expected one label per row (", rows.rows(), "), got ", labels.size()),
        {{"expected", absl::StrCat(rows.rows())}, {"actual", absl::StrCat(labels.size())}});
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < class_count) continue;
    return Invalid("FIELD_OUT_OF_RANGE", "labels",
                   absl::StrCat("row ", i, ": expected a label from 0 to ", class_count - 1,
                                ", got ", labels[i]),
                   {{"row", absl::StrCat(i)}});
  }
  return CheckFinite(rows);
}

absl::Status Model::CheckColumns(int64_t columns) const {
  if (columns == this->columns()) return absl::OkStatus();
  return Invalid(
      "COLUMNS_MISMATCH", "rows",
      absl::StrCat("the model was trained on ", this->columns(), " columns, got ", columns),
      {{"expected", absl::StrCat(this->columns())}, {"actual", absl::StrCat(columns)}});
}

absl::StatusOr<std::vector<int32_t>> Model::Predict(ConstMatrixView<double> rows,
                                                    Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
  const int64_t n = rows.rows();
  std::vector<int32_t> classes(static_cast<size_t>(n));
  Matrix<double> scores(std::min(n, kRowsPerScoring), class_count());
  for (int64_t first = 0; first < n; first += kRowsPerScoring) {
    const int64_t count = std::min(kRowsPerScoring, n - first);
    // Converts the progress of one block, 0 to 1, to the progress of all blocks.
    const auto part = [&](double fraction) {
      return checkpoint((static_cast<double>(first) + fraction * static_cast<double>(count)) /
                        static_cast<double>(n));
    };
    PHIMAP_RETURN_IF_ERROR(Scores(rows.Rows(first, count), scores.view().Rows(0, count), part));
    for (int64_t i = 0; i < count; ++i) {
      const double* row = scores.row(i);
      classes[first + i] = static_cast<int32_t>(std::max_element(row, row + class_count()) - row);
    }
  }
  return classes;
}

absl::Status LinearModel::Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                                 Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
  const int64_t n = rows.rows();
  for (int64_t first = 0; first < n; first += kRowsPerScoring) {
    PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(first) / static_cast<double>(n)));
    const int64_t count = std::min(kRowsPerScoring, n - first);
    const MatrixView<double> out = scores.Rows(first, count);
    MultiplyTransposed(1, rows.Rows(first, count), weights_.weights.view(), 0, out);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t y = 0; y < out.cols(); ++y) out(i, y) += weights_.intercepts[y];
    }
  }
  return absl::OkStatus();
}

LinearWeights SplitIntercepts(ConstMatrixView<double> augmented, double bias) {
  const int64_t columns = augmented.cols() - (bias > 0 ? 1 : 0);
  LinearWeights split{.weights = Matrix<double>::Uninit(augmented.rows(), columns),
                      .intercepts = std::vector<double>(static_cast<size_t>(augmented.rows())),
                      .bias = bias};
  for (int64_t y = 0; y < augmented.rows(); ++y) {
    std::copy_n(augmented.row(y), columns, split.weights.row(y));
    if (bias > 0) split.intercepts[y] = augmented(y, columns) * bias;
  }
  return split;
}

}  // namespace phimap
