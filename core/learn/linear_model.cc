#include "core/learn/linear_model.h"

#include <algorithm>

#include "core/learn/row_blocks.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"

namespace phimap {
absl::Status LinearModel::Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                                 Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
  const int64_t n = rows.rows();
  for (int64_t first = 0; first < n; first += kScoredRows) {
    PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(first) / static_cast<double>(n)));
    const int64_t count = std::min(kScoredRows, n - first);
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
