#include "core/certificate/spectrum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

constexpr int kLambdas = 5;

// Returns the eigenvalues of a symmetric matrix, divided by its number of rows, in descending
// order. Reads only the lower triangle of `m`; negative eigenvalues become 0.
absl::StatusOr<std::vector<double>> ScaledEigenvalues(Matrix<double>& m) {
  PHIMAP_ASSIGN_OR_RETURN(std::vector<double> values, SymmetricEigenvalues(m.view()));
  std::reverse(values.begin(), values.end());
  for (double& value : values) value = std::max(0.0, value / static_cast<double>(m.rows()));
  return values;
}

double Dimension(const std::vector<double>& eigenvalues, double lambda) {
  double sum = 0;
  for (const double value : eigenvalues) sum += value / (value + lambda);
  return sum;
}

}  // namespace

absl::StatusOr<Spectrum> MeasureSpectrum(const KernelProgram& kernel, ConstMatrixView<double> x,
                                         ConstMatrixView<double> pivots,
                                         ConstMatrixView<double> factor,
                                         const TileControl& control) {
  PHIMAP_CHECK(x.rows() >= 1 && pivots.rows() >= 1 && factor.rows() == pivots.rows());
  Matrix<double> gram = Matrix<double>::Uninit(x.rows(), x.rows());
  PHIMAP_RETURN_IF_ERROR(KernelGram(kernel, x, gram.view(), control));
  Matrix<double> block = Matrix<double>::Uninit(pivots.rows(), x.rows());
  KernelBlock(kernel, pivots, SquaredNorms(pivots), x, SquaredNorms(x), block.view());
  return MeasureGramSpectrum(std::move(gram), std::move(block), factor, control);
}

absl::StatusOr<Spectrum> MeasureGramSpectrum(Matrix<double> gram, Matrix<double> block,
                                             ConstMatrixView<double> factor,
                                             const TileControl& control) {
  const int64_t m = gram.rows();
  PHIMAP_CHECK(m >= 1 && gram.cols() == m && block.cols() == m && block.rows() == factor.rows());
  Spectrum spectrum;
  spectrum.rows = m;
  spectrum.held_out = true;
  for (int64_t i = 0; i < m; ++i) spectrum.trace += gram(i, i) / static_cast<double>(m);
  if (!(spectrum.trace > 0) || !std::isfinite(spectrum.trace)) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kSpectrumUndefined, "kernel",
        absl::StrCat("K(x, x) has the mean ", spectrum.trace, " over ", CountOf(m, "row")));
  }
  // Replaces the block by L⁻¹·k_r(x_i) of each row. K̂ holds the inner products of these vectors.
  SolveLowerTriangle(factor, block.view());
  const Matrix<double> projected = Transposed(block.view());
  Matrix<double> approximation = Matrix<double>::Uninit(m, m);
  SymmetricRankUpdate(1, projected.view(), 0, approximation.view());
  for (int64_t i = 0; i < m; ++i) {
    spectrum.residual += std::max(0.0, gram(i, i) - approximation(i, i)) / static_cast<double>(m);
  }
  Matrix<double>* const matrices[] = {&gram, &approximation};
  absl::StatusOr<std::vector<double>> eigenvalues[2];
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), 2, control, [&](int64_t i) {
    eigenvalues[i] = ScaledEigenvalues(*matrices[i]);
  }));
  for (const auto& found : eigenvalues) PHIMAP_RETURN_IF_ERROR(found.status());
  const std::vector<double>& of_kernel = *eigenvalues[0];
  const std::vector<double>& of_mapping = *eigenvalues[1];
  double lambda = spectrum.trace;
  for (int i = 0; i < kLambdas; ++i) {
    lambda /= 10;
    spectrum.effective_dimensions.push_back(
        {lambda, Dimension(of_kernel, lambda), Dimension(of_mapping, lambda)});
  }
  spectrum.eigenvalues.assign(of_kernel.begin(), of_kernel.begin() + std::min(m, kMaxEigenvalues));
  return spectrum;
}

Work WorkOfSpectrum(int64_t rows, int64_t columns, int64_t rank, const ValueWork& value) {
  const double m = static_cast<double>(rows);
  const double r = static_cast<double>(rank);
  const double p = static_cast<double>(columns);
  Work work = WorkOfKernelBlock(1, TiledTriangle(rows), p, value);
  work += WorkOfKernelBlock(r, m, p, value);
  work.product_flops += r * r * m + m * (m + 1) * r;
  work.factor_flops += 2 * (4.0 / 3) * m * m * m;  // the eigenvalues of K and of K̂
  return work;
}

int64_t BytesOfSpectrum(int64_t rows, int64_t columns, int64_t rank) {
  // Counts the rows before and after the input stage, K and K̂, the projection and its transpose,
  // and the tile in which the Gram matrix is computed.
  const int64_t numbers = 2 * rows * columns + 2 * rows * rows + 2 * rank * rows + 256 * rows;
  return numbers * static_cast<int64_t>(sizeof(double));
}

}  // namespace phimap
