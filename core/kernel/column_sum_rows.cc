#include "core/kernel/column_sum_rows.h"

#include <algorithm>

#include "core/linalg/panel_product.h"
#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/column_sum_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"

#ifndef PHIMAP_CORE_KERNEL_COLUMN_SUM_TASK_
#define PHIMAP_CORE_KERNEL_COLUMN_SUM_TASK_
namespace phimap {

// Number of rows of a panel. On every target, it is a whole number of pairs of vectors.
inline constexpr int64_t kSumPanelRows = 32;

// Arguments for one row x and one panel. `x` and `weights` begin with the first column that the sum
// reads.
template <typename T>
struct ColumnSumTask {
  const T* x;
  const T* weights;
  const T* panel;
  int64_t taken;
  T* out;  // kSumPanelRows numbers
};

}  // namespace phimap
#endif

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// TermBody::Add computes sum + w·g(x, a).
template <ColumnTerm>
struct TermBody;

template <>
struct TermBody<ColumnTerm::kProduct> {
  template <class D, class V>
  static HWY_INLINE V Add(D, V x, V a, V w, V sum) {
    return hn::MulAdd(hn::Mul(w, x), a, sum);
  }
};

template <>
struct TermBody<ColumnTerm::kAbsoluteDifference> {
  template <class D, class V>
  static HWY_INLINE V Add(D, V x, V a, V w, V sum) {
    return hn::MulAdd(w, hn::Abs(hn::Sub(x, a)), sum);
  }
};

template <>
struct TermBody<ColumnTerm::kSquaredDifference> {
  template <class D, class V>
  static HWY_INLINE V Add(D, V x, V a, V w, V sum) {
    const V difference = hn::Sub(x, a);
    return hn::MulAdd(hn::Mul(w, difference), difference, sum);
  }
};

// Returns `term`, or NaN where x or a is negative.
template <class D, class V>
HWY_INLINE V OfPositive(D d, V x, V a, V term) {
  return hn::IfThenElse(hn::Lt(hn::Min(x, a), hn::Zero(d)), hn::NaN(d), term);
}

template <>
struct TermBody<ColumnTerm::kHarmonicMean> {
  template <class D, class V>
  static HWY_INLINE V Add(D d, V x, V a, V w, V sum) {
    // Computes 2x/(x + a) before it multiplies by a, because the product x·a could overflow.
    const V both = hn::Add(x, a);
    const V share = hn::IfThenElse(hn::Eq(both, hn::Zero(d)), both, hn::Div(hn::Add(x, x), both));
    return hn::MulAdd(hn::Mul(w, share), OfPositive(d, x, a, a), sum);
  }
};

template <>
struct TermBody<ColumnTerm::kChiSquare> {
  template <class D, class V>
  static HWY_INLINE V Add(D d, V x, V a, V w, V sum) {
    const V both = hn::Add(x, a);
    const V difference = hn::Sub(x, a);
    const V share = hn::IfThenElse(hn::Eq(both, hn::Zero(d)), both, hn::Div(difference, both));
    return hn::MulAdd(hn::Mul(w, share), OfPositive(d, x, a, difference), sum);
  }
};

template <>
struct TermBody<ColumnTerm::kMinimum> {
  template <class D, class V>
  static HWY_INLINE V Add(D d, V x, V a, V w, V sum) {
    return hn::MulAdd(w, OfPositive(d, x, a, hn::Min(x, a)), sum);
  }
};

template <ColumnTerm kTerm, typename T>
void SumPanel(const ColumnSumTask<T>& task) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = hn::Lanes(d);
  using Body = TermBody<kTerm>;
  for (int64_t j = 0; j < kSumPanelRows; j += 2 * lanes) {
    auto total0 = hn::Zero(d);
    auto total1 = hn::Zero(d);
    for (int64_t begin = 0; begin < task.taken; begin += kChainBlock) {
      const int64_t end = std::min(task.taken, begin + kChainBlock);
      auto sum0 = hn::Zero(d);
      auto sum1 = hn::Zero(d);
      const T* a = task.panel + begin * kSumPanelRows + j;
      for (int64_t k = begin; k < end; ++k, a += kSumPanelRows) {
        const auto x = hn::Set(d, task.x[k]);
        const auto w = hn::Set(d, task.weights[k]);
        sum0 = Body::Add(d, x, hn::Load(d, a), w, sum0);
        sum1 = Body::Add(d, x, hn::Load(d, a + lanes), w, sum1);
      }
      total0 = hn::Add(total0, sum0);
      total1 = hn::Add(total1, sum1);
    }
    hn::StoreU(total0, d, task.out + j);
    hn::StoreU(total1, d, task.out + j + lanes);
  }
}

template <typename T>
void SumPanelOf(ColumnTerm term, const ColumnSumTask<T>& task) {
  switch (term) {
#define PHIMAP_SUM(NAME, CODE) \
  case ColumnTerm::NAME:       \
    return SumPanel<ColumnTerm::NAME>(task);
    PHIMAP_COLUMN_TERMS(PHIMAP_SUM)
#undef PHIMAP_SUM
  }
}

void SumPanelF32(ColumnTerm term, const ColumnSumTask<float>& task) { SumPanelOf(term, task); }
void SumPanelF64(ColumnTerm term, const ColumnSumTask<double>& task) { SumPanelOf(term, task); }

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {

HWY_EXPORT(SumPanelF32);
HWY_EXPORT(SumPanelF64);

namespace {

void RunPanel(ColumnTerm term, const ColumnSumTask<float>& task) {
  HWY_DYNAMIC_DISPATCH(SumPanelF32)(term, task);
}
void RunPanel(ColumnTerm term, const ColumnSumTask<double>& task) {
  HWY_DYNAMIC_DISPATCH(SumPanelF64)(term, task);
}

}  // namespace

template <typename T>
ColumnSumRows<T>::ColumnSumRows(const ColumnSum& sum, ConstMatrixView<T> rows)
    : term_(sum.term), first_(sum.first), rows_(rows.rows()) {
  PHIMAP_CHECK(sum.LeastColumns() <= rows.cols());
  const int64_t taken = sum.ColumnsReadOf(rows.cols());
  for (int64_t k = 0; k < taken; ++k) weights_.push_back(static_cast<T>(sum.WeightOf(k)));
  const int64_t panels = (rows_ + kSumPanelRows - 1) / kSumPanelRows;
  panels_ = AlignedArray<T>(panels * taken * kSumPanelRows);
  T* out = panels_.data();
  for (int64_t p = 0; p < panels; ++p) {
    for (int64_t k = 0; k < taken; ++k) {
      for (int64_t j = p * kSumPanelRows; j < (p + 1) * kSumPanelRows; ++j) {
        *out++ = j < rows_ ? rows(j, first_ + k) : T{0};
      }
    }
  }
}

template <typename T>
void ColumnSumRows<T>::Sums(const T* x, T* out) const {
  ColumnSumTask<T> task{.x = x + first_,
                        .weights = weights_.data(),
                        .panel = panels_.data(),
                        .taken = taken(),
                        .out = out};
  int64_t j = 0;
  for (; j + kSumPanelRows <= rows_; j += kSumPanelRows) {
    task.out = out + j;
    RunPanel(term_, task);
    task.panel += taken() * kSumPanelRows;
  }
  if (j == rows_) return;
  T last[kSumPanelRows];
  task.out = last;
  RunPanel(term_, task);
  std::copy_n(last, rows_ - j, out + j);
}

template class ColumnSumRows<float>;
template class ColumnSumRows<double>;

}  // namespace phimap
#endif  // HWY_ONCE
