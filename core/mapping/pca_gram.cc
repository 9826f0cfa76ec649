#include "core/mapping/pca_gram.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// The upper triangle from the lower one, in square blocks, so that both stay in the cache.
void Mirror(MatrixView<double> gram) {
  constexpr int64_t kBlock = 64;
  const int64_t m = gram.rows();
  for (int64_t bi = 0; bi < m; bi += kBlock) {
    for (int64_t bj = 0; bj <= bi; bj += kBlock) {
      for (int64_t i = bi; i < std::min(m, bi + kBlock); ++i) {
        for (int64_t j = bj; j < std::min(i, bj + kBlock); ++j) gram(j, i) = gram(i, j);
      }
    }
  }
}

double MeanOf(const double* numbers, int64_t count) {
  return std::accumulate(numbers, numbers + count, 0.0) / static_cast<double>(count);
}

// Takes off each row its mean.
void TakeOffMeans(MatrixView<double> rows) {
  for (int64_t n = 0; n < rows.rows(); ++n) {
    const double mean = MeanOf(rows.row(n), rows.cols());
    for (int64_t i = 0; i < rows.cols(); ++i) rows(n, i) -= mean;
  }
}

}  // namespace

absl::StatusOr<PcaGram> PcaGram::Make(const KernelProgram& program, ConstMatrixView<double> rows,
                                      const GramForm& form, uint64_t seed, Checkpoint checkpoint) {
  PcaGram gram;
  gram.rows_ = rows.rows();
  if (form.randomization.any()) {
    PHIMAP_ASSIGN_OR_RETURN(
        gram.randomized_,
        RandomizedGram::Draw(program, rows, form.randomization, seed, checkpoint));
  } else if (form.single) {
    PHIMAP_ASSIGN_OR_RETURN(gram.single_, SingleGram(program, rows, checkpoint));
  } else {
    gram.exact_ = Matrix<double>::Uninit(gram.rows_, gram.rows_);
    PHIMAP_RETURN_IF_ERROR(KernelGram(program, rows, gram.exact_.view(), checkpoint));
    Mirror(gram.exact_.view());
  }
  for (const double k : KernelDiagonal(program, rows, SquaredNorms(rows))) {
    gram.trace_ += k;
    gram.largest_ = std::max(gram.largest_, k);
  }
  return gram;
}

PcaGram PcaGram::Of(ConstMatrixView<double> values) {
  PcaGram gram;
  gram.rows_ = values.rows();
  gram.exact_ = Converted<double, double>(values);
  Mirror(gram.exact_.view());
  for (int64_t i = 0; i < gram.rows_; ++i) {
    gram.trace_ += values(i, i);
    gram.largest_ = std::max(gram.largest_, values(i, i));
  }
  return gram;
}

void PcaGram::Centre() {
  PHIMAP_CHECK(means_.empty());
  Matrix<double> ones = Matrix<double>::Uninit(1, rows_);
  std::fill_n(ones.data(), rows_, 1 / static_cast<double>(rows_));
  std::vector<double> means(static_cast<size_t>(rows_));
  MultiplyAsIs(std::as_const(ones).view(), MatrixView<double>(means.data(), 1, rows_));
  means_ = std::move(means);
  // tr (I − 11ᵀ/m) K (I − 11ᵀ/m) = tr K − 1ᵀK1/m.
  trace_ -= std::accumulate(means_.begin(), means_.end(), 0.0);
}

void PcaGram::MultiplyAsIs(ConstMatrixView<double> v, MatrixView<double> out) const {
  if (randomized_.has_value()) return randomized_->Multiply(v, out);
  if (!exact_.empty()) return phimap::Multiply(1, v, exact_.view(), 0, out);
  const Matrix<float> from = Converted<float, double>(v);
  Matrix<float> to = Matrix<float>::Uninit(out.rows(), out.cols());
  MultiplyTransposedSingle(from.view(), single_.view(), to.view());
  for (int64_t n = 0; n < out.rows(); ++n) std::copy_n(to.row(n), out.cols(), out.row(n));
}

void PcaGram::Multiply(ConstMatrixView<double> v, MatrixView<double> out) const {
  if (means_.empty()) return MultiplyAsIs(v, out);
  Matrix<double> from = Converted<double, double>(v);
  TakeOffMeans(from.view());
  MultiplyAsIs(std::as_const(from).view(), out);
  TakeOffMeans(out);
}

}  // namespace phimap
