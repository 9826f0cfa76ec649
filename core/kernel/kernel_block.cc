#include "core/kernel/kernel_block.h"

#include <algorithm>

#include "core/kernel/kernel_evaluator.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {

std::vector<double> SquaredNorms(ConstMatrixView<double> x) {
  std::vector<double> norms(x.rows());
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double* row = x.row(i);
    double sum = 0;
    for (int64_t k = 0; k < x.cols(); ++k) sum += row[k] * row[k];
    norms[i] = sum;
  }
  return norms;
}

void KernelBlock(const KernelProgram& program, ConstMatrixView<double> x,
                 const std::vector<double>& x_norms, ConstMatrixView<double> z,
                 const std::vector<double>& z_norms, MatrixView<double> out) {
  PHIMAP_CHECK(x.cols() == z.cols() && out.rows() == x.rows() && out.cols() == z.rows());
  PHIMAP_CHECK(x_norms.size() == x.rows() && z_norms.size() >= z.rows());
  MultiplyTransposed(1, x, z, 0, out);
  for (int64_t i = 0; i < x.rows(); ++i) {
    EvaluateKernel(program, out.row(i), x_norms[i], z_norms.data(), z.rows(), out.row(i));
  }
}

std::vector<double> KernelDiagonal(const KernelProgram& program,
                                   const std::vector<double>& x_norms) {
  std::vector<double> diagonal(x_norms.size());
  for (size_t i = 0; i < x_norms.size(); ++i) {
    EvaluateKernel(program, &x_norms[i], x_norms[i], &x_norms[i], 1, &diagonal[i]);
  }
  return diagonal;
}

absl::Status KernelGram(const KernelProgram& program, ConstMatrixView<double> x,
                        MatrixView<double> out, Checkpoint checkpoint) {
  PHIMAP_CHECK(out.rows() == x.rows() && out.cols() == x.rows());
  constexpr int64_t kTileRows = 256;
  const int64_t n = x.rows();
  const std::vector<double> norms = SquaredNorms(x);
  const std::vector<double> diagonal = KernelDiagonal(program, norms);
  for (int64_t begin = 0; begin < n; begin += kTileRows) {
    const int64_t end = std::min(n, begin + kTileRows);
    PHIMAP_RETURN_IF_ERROR(
        checkpoint(static_cast<double>(begin) * begin / (static_cast<double>(n) * n)));
    // The tile is computed up to the end of its last row; what lies right of the diagonal goes to a
    // buffer of its own.
    const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + end);
    Matrix<double> tile = Matrix<double>::Uninit(end - begin, end);
    KernelBlock(program, x.Rows(begin, end - begin), tile_norms, x.Rows(0, end), norms,
                tile.view());
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(tile.row(i - begin), i, out.row(i));
      out(i, i) = diagonal[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace phimap
