#include "core/plan/input_stage.h"

#include "core/linalg/blas.h"
#include "core/status/check.h"

namespace phimap {

Matrix<double> AfterInputStage(const InputStage& input, ConstMatrixView<double> rows) {
  PHIMAP_CHECK(rows.cols() == input.columns);
  Matrix<double> x = Matrix<double>::Uninit(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t k = 0; k < rows.cols(); ++k) {
      double value = rows(i, k);
      if (!input.shift.empty()) value -= input.shift[k];
      if (!input.scale.empty()) value *= input.scale[k];
      x(i, k) = value;
    }
  }
  if (input.projection.empty()) return x;
  Matrix<double> projected = Matrix<double>::Uninit(rows.rows(), input.projection.cols());
  Multiply(1, x.view(), input.projection.view(), 0, projected.view());
  return projected;
}

InputStage CopyOf(const InputStage& input) {
  return {.columns = input.columns,
          .shift = input.shift,
          .scale = input.scale,
          .projection = input.projection.Clone()};
}

}  // namespace phimap
