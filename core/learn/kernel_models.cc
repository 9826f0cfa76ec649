#include "core/learn/kernel_models.h"

#include <algorithm>

#include "core/kernel/kernel_block.h"
#include "core/learn/row_blocks.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"

namespace phimap {
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

}  // namespace phimap
