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

// Number of rows x whose sums are computed together. A step of a chain waits for the step before
// it, so that many chains are needed to keep the units busy. The rows also share the panel's
// numbers.
inline constexpr int kSumRows = 4;

// Arguments for kSumRows rows x, or one, and one panel. `x` and `weights` begin with the first
// column that the sum reads.
template <typename T>
struct ColumnSumTask {
  const T* x[kSumRows];
  const T* weights;
  const T* panel;
  int64_t taken;
  T* out[kSumRows];  // kSumPanelRows numbers each
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

// Adds columns begin … end − 1 to the sums of 2·lanes fixed rows, which begin at `a`, with each row
// x.
template <ColumnTerm kTerm, int kRows, class D, class V, typename T>
HWY_INLINE void AddColumns(D d, const ColumnSumTask<T>& task, int64_t begin, int64_t end,
                           const T* a, V (&left)[kRows], V (&right)[kRows]) {
  using Body = TermBody<kTerm>;
  for (int64_t k = begin; k < end; ++k, a += kSumPanelRows) {
    const auto w = hn::Set(d, task.weights[k]);
    const auto a0 = hn::Load(d, a);
    const auto a1 = hn::Load(d, a + hn::Lanes(d));
    for (int r = 0; r < kRows; ++r) {
      const auto x = hn::Set(d, task.x[r][k]);
      left[r] = Body::Add(d, x, a0, w, left[r]);
      right[r] = Body::Add(d, x, a1, w, right[r]);
    }
  }
}

template <ColumnTerm kTerm, int kRows, typename T>
void SumPanel(const ColumnSumTask<T>& task) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t j = 0; j < kSumPanelRows; j += 2 * lanes) {
    V total_left[kRows];
    V total_right[kRows];
    for (int r = 0; r < kRows; ++r) total_left[r] = total_right[r] = hn::Zero(d);
    for (int64_t begin = 0; begin < task.taken; begin += kChainBlock) {
      const int64_t end = std::min(task.taken, begin + kChainBlock);
      V left[kRows];
      V right[kRows];
      for (int r = 0; r < kRows; ++r) left[r] = right[r] = hn::Zero(d);
      AddColumns<kTerm>(d, task, begin, end, task.panel + begin * kSumPanelRows + j, left, right);
      for (int r = 0; r < kRows; ++r) {
        total_left[r] = hn::Add(total_left[r], left[r]);
        total_right[r] = hn::Add(total_right[r], right[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      hn::StoreU(total_left[r], d, task.out[r] + j);
      hn::StoreU(total_right[r], d, task.out[r] + j + lanes);
    }
  }
}

// `rows`: kSumRows or 1.
template <typename T>
void SumPanelOf(ColumnTerm term, int rows, const ColumnSumTask<T>& task) {
  switch (term) {
#define PHIMAP_SUM(NAME, CODE)                                              \
  case ColumnTerm::NAME:                                                    \
    return rows == kSumRows ? SumPanel<ColumnTerm::NAME, kSumRows, T>(task) \
                            : SumPanel<ColumnTerm::NAME, 1, T>(task);
    PHIMAP_COLUMN_TERMS(PHIMAP_SUM)
#undef PHIMAP_SUM
  }
}

void SumPanelF32(ColumnTerm term, int rows, const ColumnSumTask<float>& task) {
  SumPanelOf(term, rows, task);
}
void SumPanelF64(ColumnTerm term, int rows, const ColumnSumTask<double>& task) {
  SumPanelOf(term, rows, task);
}

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {

HWY_EXPORT(SumPanelF32);
HWY_EXPORT(SumPanelF64);

namespace {

void RunPanel(ColumnTerm term, int rows, const ColumnSumTask<float>& task) {
  HWY_DYNAMIC_DISPATCH(SumPanelF32)(term, rows, task);
}
void RunPanel(ColumnTerm term, int rows, const ColumnSumTask<double>& task) {
  HWY_DYNAMIC_DISPATCH(SumPanelF64)(term, rows, task);
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
void ColumnSumRows<T>::Sums(const T* x, int64_t stride, int64_t count, T* const* out) const {
  // The panel is the outer loop: it stays in the cache while all rows are summed with it.
  for (int64_t j = 0; j < rows_; j += kSumPanelRows) {
    const T* const panel = panels_.data() + j * taken();
    const bool is_whole = j + kSumPanelRows <= rows_;
    for (int64_t i = 0; i < count;) {
      const int rows = count - i >= kSumRows ? kSumRows : 1;
      T last[kSumRows][kSumPanelRows];
      ColumnSumTask<T> task{
          .x = {}, .weights = weights_.data(), .panel = panel, .taken = taken(), .out = {}};
      for (int r = 0; r < rows; ++r) {
        task.x[r] = x + (i + r) * stride + first_;
        task.out[r] = is_whole ? out[i + r] + j : last[r];
      }
      RunPanel(term_, rows, task);
      for (int r = 0; r < rows && !is_whole; ++r) {
        std::copy_n(last[r], rows_ - j, out[i + r] + j);
      }
      i += rows;
    }
  }
}

template class ColumnSumRows<float>;
template class ColumnSumRows<double>;

}  // namespace phimap
#endif  // HWY_ONCE
