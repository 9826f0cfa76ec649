#include "lab/experiments/ams_eigen.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/linalg/blas.h"
#include "core/linalg/orthogonal_iteration.h"
#include "core/status/status_macros.h"

namespace phimap::lab {

absl::StatusOr<GramEigen> GramEigenOf(const Matrix<float>& k) {
  PHIMAP_ASSIGN_OR_RETURN(const Eigenpairs pairs,
                          FactorEigenpairs(Converted<double, float>(k.view()), k.rows()));
  std::vector<size_t> order(pairs.values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs.values[a] > pairs.values[b]; });
  GramEigen eigen{.values = {}, .vectors = Matrix<double>::Uninit(k.rows(), k.rows())};
  for (size_t n = 0; n < order.size(); ++n) {
    eigen.values.push_back(pairs.values[order[n]]);
    std::copy_n(pairs.vectors.row(static_cast<int64_t>(order[n])), k.rows(),
                eigen.vectors.row(static_cast<int64_t>(n)));
  }
  return eigen;
}

absl::StatusOr<Matrix<float>> DenseGram(const RandomizedGram& gram) {
  Matrix<float> dense(gram.rows(), gram.rows());
  PHIMAP_RETURN_IF_ERROR(gram.SubtractFrom(dense.view(), NeverStop));
  for (int64_t i = 0; i < dense.size(); ++i) dense.data()[i] = -dense.data()[i];
  return dense;
}

GramComparison::GramComparison(const GramEigen& of_k, const GramEigen& of_hat, double error)
    : exact(of_k), found(of_hat), norm(error) {
  const int64_t m = of_k.vectors.rows();
  overlap = Matrix<double>::Uninit(m, m);
  transposed = Matrix<double>::Uninit(m, m);
  MultiplyTransposed(1, of_hat.vectors.view(), of_k.vectors.view(), 0, overlap.view());
  MultiplyTransposed(1, of_k.vectors.view(), of_hat.vectors.view(), 0, transposed.view());
}

int64_t FirstUnder(const std::vector<double>& falling, double bound) {
  return std::partition_point(falling.begin(), falling.end(),
                              [&](double value) { return value >= bound; }) -
         falling.begin();
}

absl::StatusOr<double> CornerNorm(const Matrix<double>& overlap, int64_t rows, int64_t first) {
  if (first == overlap.cols()) return 0.0;
  const ConstMatrixView<double> corner =
      overlap.view().Block(0, first, rows, overlap.cols() - first);
  Matrix<double> gram = Matrix<double>::Uninit(rows, rows);
  MultiplyTransposed(1, corner, corner, 0, gram.view());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < i; ++j) gram(j, i) = gram(i, j);
  }
  PHIMAP_ASSIGN_OR_RETURN(const Eigenpairs largest, FactorEigenpairs(std::move(gram), 1));
  return std::sqrt(std::max(0.0, largest.values[0]));
}

}  // namespace phimap::lab
