#include "lab/gram_schmidt_map.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

// Returns the rows with these numbers.
Matrix<double> RowsOf(ConstMatrixView<double> from, const std::vector<int64_t>& numbers) {
  Matrix<double> rows(static_cast<int64_t>(numbers.size()), from.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(from.row(numbers[i]), from.cols(), rows.row(i));
  }
  return rows;
}

Matrix<double> KernelValues(const KernelProgram& kernel, ConstMatrixView<double> x,
                            ConstMatrixView<double> z) {
  Matrix<double> values(x.rows(), z.rows());
  KernelBlock(kernel, x, SquaredNorms(x), z, SquaredNorms(z), values.view());
  return values;
}

// Returns a bound of the rounding error of landmark j's residual. The residual is zᵀMz, where z is
// 1 for landmark j and −w for the kept ones, and Σ w_k φ(x_k) is the projection of φ(x_j) onto
// their span. If each value K(x, y) errs by at most β√(K(x, x)K(y, y)), zᵀMz errs by at most
// β(Σ|z_i|√M_ii)². Where the kept landmarks are nearly dependent, w is large.
double ResidualError(const Matrix<double>& gram, const Matrix<double>& u,
                     const std::vector<int64_t>& kept, int64_t j) {
  const auto r = static_cast<int64_t>(kept.size());
  std::vector<double> w(kept.size());
  double length = std::sqrt(gram(j, j));
  for (int64_t k = r - 1; k >= 0; --k) {
    w[k] = u(k, j);
    for (int64_t i = k + 1; i < r; ++i) w[k] -= u(k, kept[i]) * w[i];
    w[k] /= u(k, kept[k]);
    length += std::abs(w[k]) * std::sqrt(gram(kept[k], kept[k]));
  }
  return GramSchmidtMap::kValueError * length * length;
}

}  // namespace

absl::StatusOr<GramSchmidtMap> GramSchmidtMap::Make(const std::string& kernel,
                                                    ConstMatrixView<double> landmarks) {
  PHIMAP_ASSIGN_OR_RETURN(const KernelExpression expression, KernelExpression::Parse(kernel));
  GramSchmidtMap map(KernelProgram::Compile(expression));
  const Matrix<double> gram = KernelValues(map.kernel_, landmarks, landmarks);
  const int64_t d = landmarks.rows();
  Matrix<double> u(d, d);  // row r belongs to independent_[r]
  std::vector<int64_t>& kept = map.independent_;
  for (int64_t j = 0; j < d; ++j) {
    const auto r = static_cast<int64_t>(kept.size());
    double residual = gram(j, j);
    for (int64_t k = 0; k < r; ++k) residual -= u(k, j) * u(k, j);
    if (residual <= ResidualError(gram, u, kept, j)) continue;
    kept.push_back(j);
    u(r, j) = std::sqrt(residual);
    for (int64_t i = j + 1; i < d; ++i) {
      double rest = gram(j, i);
      for (int64_t k = 0; k < r; ++k) rest -= u(k, j) * u(k, i);
      u(r, i) = rest / u(r, j);
    }
  }
  map.landmarks_ = RowsOf(landmarks, kept);
  map.upper_ = Matrix<double>(map.rank(), map.rank());
  for (int64_t k = 0; k < map.rank(); ++k) {
    for (int64_t r = k; r < map.rank(); ++r) map.upper_(k, r) = u(k, kept[r]);
  }
  return map;
}

Matrix<double> GramSchmidtMap::Map(ConstMatrixView<double> rows) const {
  Matrix<double> features = KernelValues(kernel_, rows, landmarks_.view());
  for (int64_t i = 0; i < features.rows(); ++i) {
    double* f = features.row(i);
    for (int64_t r = 0; r < rank(); ++r) {
      for (int64_t k = 0; k < r; ++k) f[r] -= upper_(k, r) * f[k];
      f[r] /= upper_(r, r);
    }
  }
  return features;
}

}  // namespace phimap::lab
