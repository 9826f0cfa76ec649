#include "core/mapping/kernel_pca/pca_gram.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Rows of K that one thread multiplies at a time.
constexpr int64_t kProductRows = 256;

// Copies the lower triangle to the upper one, in square blocks, so that both stay in the cache.
absl::Status Mirror(MatrixView<double> gram, const TileControl& control) {
  constexpr int64_t kBlock = 64;
  return ForEachRange(gram.rows(), kBlock, control, [&](int64_t bi, int64_t count) {
    for (int64_t bj = 0; bj <= bi; bj += kBlock) {
      for (int64_t i = bi; i < bi + count; ++i) {
        for (int64_t j = bj; j < std::min(i, bj + kBlock); ++j) gram(j, i) = gram(i, j);
      }
    }
  });
}

double MeanOf(const double* numbers, int64_t count) {
  return std::accumulate(numbers, numbers + count, 0.0) / static_cast<double>(count);
}

// Mirror's share of the time that the Gram matrix takes. It reads and writes 8 bytes per value.
constexpr double kMirrorShare = 0.1;

// Subtracts the mean of each row from the row's entries.
void TakeOffMeans(MatrixView<double> rows) {
  for (int64_t n = 0; n < rows.rows(); ++n) {
    const double mean = MeanOf(rows.row(n), rows.cols());
    for (int64_t i = 0; i < rows.cols(); ++i) rows(n, i) -= mean;
  }
}

}  // namespace

absl::StatusOr<PcaGram> PcaGram::Make(const KernelProgram& program, ConstMatrixView<double> rows,
                                      const GramForm& form, uint64_t seed,
                                      const TileControl& control) {
  PcaGram gram;
  gram.rows_ = rows.rows();
  if (form.randomization.any()) {
    PHIMAP_ASSIGN_OR_RETURN(gram.randomized_,
                            RandomizedGram::Draw(program, rows, form.randomization, seed, control));
  } else if (form.single) {
    PHIMAP_ASSIGN_OR_RETURN(gram.single_, SingleGram(program, rows, control));
  } else {
    gram.exact_ = Matrix<double>::Uninit(gram.rows_, gram.rows_);
    PHIMAP_RETURN_IF_ERROR(KernelGram(
        program, rows, gram.exact_.view(),
        {control.threads_ref(), [&](double f) { return control((1 - kMirrorShare) * f); }}));
    PHIMAP_RETURN_IF_ERROR(Mirror(gram.exact_.view(), {control.threads_ref(), [&](double f) {
                                                         return control(1 - kMirrorShare * (1 - f));
                                                       }}));
  }
  for (const double k : KernelDiagonal(program, rows, SquaredNorms(rows))) {
    gram.trace_ += k;
    gram.largest_ = std::max(gram.largest_, k);
  }
  return gram;
}

absl::StatusOr<PcaGram> PcaGram::Of(ConstMatrixView<double> values, const TileControl& control) {
  PcaGram gram;
  gram.rows_ = values.rows();
  gram.exact_ = Converted<double, double>(values);
  PHIMAP_RETURN_IF_ERROR(Mirror(gram.exact_.view(), control));
  for (int64_t i = 0; i < gram.rows_; ++i) {
    gram.trace_ += values(i, i);
    gram.largest_ = std::max(gram.largest_, values(i, i));
  }
  return gram;
}

absl::Status PcaGram::Centre(const TileControl& control) {
  PHIMAP_CHECK(means_.empty());
  Matrix<double> ones = Matrix<double>::Uninit(1, rows_);
  std::fill_n(ones.data(), rows_, 1 / static_cast<double>(rows_));
  std::vector<double> means(static_cast<size_t>(rows_));
  PHIMAP_RETURN_IF_ERROR(MultiplyAsIs(std::as_const(ones).view(),
                                      MatrixView<double>(means.data(), 1, rows_), control));
  means_ = std::move(means);
  // Updates the trace after centring: tr (I − 11ᵀ/m) K (I − 11ᵀ/m) = tr K − 1ᵀK1/m, where 1 is the
  // vector of ones. The means sum to 1ᵀK1/m.
  trace_ -= std::accumulate(means_.begin(), means_.end(), 0.0);
  return absl::OkStatus();
}

// K is symmetric, so its rows [begin, begin + count) give the same columns of the product.
absl::Status PcaGram::MultiplyAsIs(ConstMatrixView<double> v, MatrixView<double> out,
                                   const TileControl& control) const {
  if (randomized_.has_value()) return randomized_->Multiply(v, out, control);
  if (!exact_.empty()) {
    return ForEachRange(rows_, kProductRows, control, [&](int64_t begin, int64_t count) {
      MultiplyTransposed(1, v, std::as_const(exact_).view().Rows(begin, count), 0,
                         out.Block(0, begin, out.rows(), count));
    });
  }
  const Matrix<float> from = Converted<float, double>(v);
  Matrix<float> to = Matrix<float>::Uninit(out.rows(), out.cols());
  return ForEachRange(rows_, kProductRows, control, [&](int64_t begin, int64_t count) {
    MultiplyTransposedSingle(from.view(), std::as_const(single_).view().Rows(begin, count),
                             to.view().Block(0, begin, to.rows(), count));
    for (int64_t n = 0; n < out.rows(); ++n) {
      std::copy_n(to.row(n) + begin, count, out.row(n) + begin);
    }
  });
}

Matrix<double> PcaGram::Exact() const {
  PHIMAP_CHECK(!exact_.empty());
  Matrix<double> gram = exact_.Clone();
  if (means_.empty()) return gram;
  const double mean = MeanOf(means_.data(), rows_);
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t j = 0; j < rows_; ++j) gram(i, j) += mean - means_[i] - means_[j];
  }
  return gram;
}

absl::Status PcaGram::Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                               const TileControl& control) const {
  if (means_.empty()) return MultiplyAsIs(v, out, control);
  Matrix<double> from = Converted<double, double>(v);
  TakeOffMeans(from.view());
  PHIMAP_RETURN_IF_ERROR(MultiplyAsIs(std::as_const(from).view(), out, control));
  TakeOffMeans(out);
  return absl::OkStatus();
}

}  // namespace phimap
