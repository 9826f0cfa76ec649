#include "core/linalg/panel_product.h"

#include <algorithm>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/linalg/panel_product.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h, which includes this file once for each target.
#include "hwy/highway.h"

// Shared by all targets, so outside of their namespaces.
#ifndef PHIMAP_CORE_LINALG_PANEL_PRODUCT_ONCE
#define PHIMAP_CORE_LINALG_PANEL_PRODUCT_ONCE
namespace phimap {

// Adjacent panels and the rows they are applied to.
template <typename T>
struct PanelTask {
  const T* elements;       // of the whole matrix
  const int64_t* offsets;  // of each panel in `elements`
  const int64_t* heights;  // rows stored of each panel, never falling; what lies below is zero
  int64_t panels;
  int64_t columns;  // columns of these panels that exist in W
  const T* z;       // rows × depth
  int64_t z_stride;
  int64_t rows;
  T* const* y;  // y[i] + first_column is where row i's result goes
  int64_t first_column;
};

}  // namespace phimap
#endif  // PHIMAP_CORE_LINALG_PANEL_PRODUCT_ONCE

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows whose sums are kept in registers: two vectors each, beside two of the panel and one of z. 32
// registers on AVX-512, 16 elsewhere; 12 rows would spill on AVX2.
#if HWY_TARGET <= HWY_AVX3
constexpr int kBlockRows = 12;
#else
constexpr int kBlockRows = 6;
#endif

// Panels that few rows are applied to at the same time. A multiply-add takes about four cycles and
// two start in each, so that fewer than eight chains leave the unit idle; and several panels are
// several streams of memory.
constexpr int GroupPanels(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

// The two vectors of row r, columns `first` …; a panel's last columns may lie outside of W.
template <class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE void StoreSums(D d, V left, V right, int64_t columns, T* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns == 2 * lanes) {
    hn::StoreU(left, d, out);
    hn::StoreU(right, d, out + lanes);
    return;
  }
  HWY_ALIGN T buffer[2 * HWY_MAX_BYTES / sizeof(T)];
  hn::Store(left, d, buffer);
  hn::Store(right, d, buffer + lanes);
  std::copy_n(buffer, columns, out);
}

// Sums of kRows rows × kPanels panels × two vectors.
template <int kRows, int kPanels, class V>
struct Sums {
  V left[kPanels][kRows];
  V right[kPanels][kRows];
};

// Adds k = begin … end − 1 of the panels first_panel and later to the sums. `w` walks along.
template <int kFirst, int kRows, int kPanels, class D, class V, typename T>
HWY_INLINE void AddProducts(D d, int64_t begin, int64_t end, const T* HWY_RESTRICT const* z,
                            const T* HWY_RESTRICT* w, Sums<kRows, kPanels, V>& sums) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t k = begin; k < end; ++k) {
    for (int p = kFirst; p < kPanels; ++p) {
      const V w_left = hn::Load(d, w[p]);
      const V w_right = hn::Load(d, w[p] + lanes);
      w[p] += 2 * lanes;
      for (int r = 0; r < kRows; ++r) {
        const V factor = hn::Set(d, z[r][k]);
        sums.left[p][r] = hn::MulAdd(factor, w_left, sums.left[p][r]);
        sums.right[p][r] = hn::MulAdd(factor, w_right, sums.right[p][r]);
      }
    }
  }
}

// The panels of a triangle end one after the other: each stage runs those that are left, up to the
// end of the lowest.
template <int kFirst, int kRows, int kPanels, class D, class V, typename T>
HWY_INLINE void AddBlock(D d, int64_t begin, int64_t end, const int64_t* heights,
                         const T* HWY_RESTRICT const* z, const T* HWY_RESTRICT* w,
                         Sums<kRows, kPanels, V>& sums) {
  if constexpr (kFirst < kPanels) {
    const int64_t stage_end = std::min(end, heights[kFirst]);
    AddProducts<kFirst>(d, begin, stage_end, z, w, sums);
    AddBlock<kFirst + 1>(d, std::max(begin, stage_end), end, heights, z, w, sums);
  }
}

template <int kRows, int kPanels, typename T>
HWY_INLINE void MultiplyRows(const PanelTask<T>& task, int64_t row) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT z[kRows];
  for (int r = 0; r < kRows; ++r) z[r] = task.z + (row + r) * task.z_stride;
  const T* HWY_RESTRICT w[kPanels];
  for (int p = 0; p < kPanels; ++p) w[p] = task.elements + task.offsets[p];
  // Block sums so far; the compiler keeps them in memory while a block runs.
  Sums<kRows, kPanels, V> totals;
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) totals.left[p][r] = totals.right[p][r] = hn::Zero(d);
  }
  for (int64_t begin = 0; begin < task.heights[kPanels - 1]; begin += kChainBlock) {
    Sums<kRows, kPanels, V> sums;
    for (int p = 0; p < kPanels; ++p) {
      for (int r = 0; r < kRows; ++r) sums.left[p][r] = sums.right[p][r] = hn::Zero(d);
    }
    AddBlock<0>(d, begin, begin + kChainBlock, task.heights, z, w, sums);
    for (int p = 0; p < kPanels; ++p) {
      for (int r = 0; r < kRows; ++r) {
        totals.left[p][r] = hn::Add(totals.left[p][r], sums.left[p][r]);
        totals.right[p][r] = hn::Add(totals.right[p][r], sums.right[p][r]);
      }
    }
  }
  for (int p = 0; p < kPanels; ++p) {
    const int64_t first = p * 2 * lanes;
    const int64_t columns = std::min(2 * lanes, task.columns - first);
    for (int r = 0; r < kRows; ++r) {
      StoreSums(d, totals.left[p][r], totals.right[p][r], columns,
                task.y[row + r] + task.first_column + first);
    }
  }
}

// Rows that are left when whole blocks are done, or all there are.
template <int kRows, typename T>
HWY_INLINE void MultiplyFewRows(const PanelTask<T>& task, int64_t row) {
  if constexpr (kRows > 0) {
    if (task.rows - row != kRows) return MultiplyFewRows<kRows - 1>(task, row);
    constexpr int kGroup = GroupPanels(kRows);
    if (task.panels == kGroup) return MultiplyRows<kRows, kGroup>(task, row);
    PanelTask<T> one = task;  // the last panels, fewer than a group
    for (one.panels = 1; one.first_column < task.first_column + task.columns;) {
      MultiplyRows<kRows, 1>(one, row);
      const int64_t width = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<T>()));
      one.first_column += width;
      one.columns -= width;
      ++one.offsets;
      ++one.heights;
    }
  }
}

// REQUIRES: as many panels as PanelsAtOnce says for task.rows, or fewer at the end of the matrix.
template <typename T>
void MultiplyPanels(const PanelTask<T>& task) {
  if (task.rows < kBlockRows) return MultiplyFewRows<kBlockRows - 1>(task, 0);
  int64_t row = 0;
  for (; row + kBlockRows <= task.rows; row += kBlockRows) MultiplyRows<kBlockRows, 1>(task, row);
  PanelTask<T> rest = task;
  rest.panels = 0;  // one panel is all there is: never a group
  MultiplyFewRows<kBlockRows - 1>(rest, row);
}

int64_t PanelsAtOnce(int64_t rows) {
  return rows < kBlockRows ? GroupPanels(static_cast<int>(rows)) : 1;
}

void MultiplyPanelsF32(const PanelTask<float>& task) { MultiplyPanels(task); }
void MultiplyPanelsF64(const PanelTask<double>& task) { MultiplyPanels(task); }

int64_t PanelColumnsF32() { return 2 * hn::Lanes(hn::ScalableTag<float>()); }
int64_t PanelColumnsF64() { return 2 * hn::Lanes(hn::ScalableTag<double>()); }

// Chains of several rows run side by side, one lane each, to hide the latency of the multiply-add.
template <typename T>
void SquaredNorms(const T* x, int64_t stride, int64_t rows, int64_t cols, T* out) {
  const hn::CappedTag<T, 1> d;
  constexpr int64_t kAtOnce = 4;
  for (int64_t first = 0; first < rows; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, rows - first);
    T totals[kAtOnce] = {};
    for (int64_t begin = 0; begin < cols; begin += kChainBlock) {
      const int64_t end = std::min(cols, begin + kChainBlock);
      for (int64_t r = 0; r < count; ++r) {
        const T* row = x + (first + r) * stride;
        auto sum = hn::Zero(d);
        for (int64_t k = begin; k < end; ++k) {
          const auto v = hn::Set(d, row[k]);
          sum = hn::MulAdd(v, v, sum);
        }
        totals[r] += hn::GetLane(sum);
      }
    }
    std::copy_n(totals, count, out + first);
  }
}

void SquaredNormsF32(const float* x, int64_t stride, int64_t rows, int64_t cols, float* out) {
  SquaredNorms(x, stride, rows, cols, out);
}
void SquaredNormsF64(const double* x, int64_t stride, int64_t rows, int64_t cols, double* out) {
  SquaredNorms(x, stride, rows, cols, out);
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }
bool TargetFuses() { return HWY_NATIVE_FMA != 0; }

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {
namespace {

HWY_EXPORT(MultiplyPanelsF32);
HWY_EXPORT(MultiplyPanelsF64);
HWY_EXPORT(PanelsAtOnce);
HWY_EXPORT(PanelColumnsF32);
HWY_EXPORT(PanelColumnsF64);
HWY_EXPORT(SquaredNormsF32);
HWY_EXPORT(SquaredNormsF64);
HWY_EXPORT(TargetName);
HWY_EXPORT(TargetFuses);

template <typename T>
int64_t PanelColumns() {
  if constexpr (sizeof(T) == 4) {
    return HWY_DYNAMIC_DISPATCH(PanelColumnsF32)();
  } else {
    return HWY_DYNAMIC_DISPATCH(PanelColumnsF64)();
  }
}

void Dispatch(const PanelTask<float>& task) { HWY_DYNAMIC_DISPATCH(MultiplyPanelsF32)(task); }
void Dispatch(const PanelTask<double>& task) { HWY_DYNAMIC_DISPATCH(MultiplyPanelsF64)(task); }

}  // namespace

template <typename T>
template <typename Height, typename Element>
PanelMatrix<T> PanelMatrix<T>::PackFrom(int64_t depth, int64_t columns, Height height,
                                        Element element) {
  PanelMatrix packed;
  packed.depth_ = depth;
  packed.columns_ = columns;
  packed.panel_columns_ = PanelColumns<T>();
  const int64_t width = packed.panel_columns_;
  int64_t size = 0;
  for (int64_t first = 0; first < columns; first += width) {
    packed.offsets_.push_back(size);
    packed.heights_.push_back(height(std::min(columns, first + width)));
    size += packed.heights_.back() * width;
  }
  packed.elements_ = AlignedArray<T>(size);
  T* out = packed.elements_.data();
  for (int64_t p = 0; p < packed.panels(); ++p) {
    for (int64_t k = 0; k < packed.heights_[p]; ++k) {
      for (int64_t j = p * width; j < (p + 1) * width; ++j) {
        *out++ = j < columns ? element(k, j) : T{0};
      }
    }
  }
  return packed;
}

template <typename T>
PanelMatrix<T> PanelMatrix<T>::Pack(ConstMatrixView<T> w) {
  return PackFrom(
      w.rows(), w.cols(), [&](int64_t) { return w.rows(); },
      [&](int64_t k, int64_t j) { return w(k, j); });
}

template <typename T>
PanelMatrix<T> PanelMatrix<T>::PackTransposed(ConstMatrixView<T> a) {
  return PackFrom(
      a.cols(), a.rows(), [&](int64_t) { return a.cols(); },
      [&](int64_t k, int64_t j) { return a(j, k); });
}

template <typename T>
PanelMatrix<T> PanelMatrix<T>::PackUpperTriangle(const T* elements, int64_t n) {
  return PackFrom(
      n, n, [](int64_t end) { return end; },
      [&](int64_t k, int64_t j) {
        return k <= j ? elements[k * n - k * (k - 1) / 2 + (j - k)] : T{0};
      });
}

template <typename T>
void PanelMatrix<T>::Multiply(const T* z, int64_t z_stride, int64_t rows, int64_t first_panel,
                              int64_t last_panel, T* const* y) const {
  PHIMAP_CHECK(0 <= first_panel && last_panel <= panels() && z_stride >= depth_);
  PHIMAP_CHECK(panels() == 0 || panel_columns_ == PanelColumns<T>());  // packed for this target
  const int64_t at_once = HWY_DYNAMIC_DISPATCH(PanelsAtOnce)(rows);
  for (int64_t p = first_panel; p < last_panel; p += at_once) {
    const int64_t count = std::min(at_once, last_panel - p);
    const int64_t first_column = p * panel_columns_;
    Dispatch(PanelTask<T>{.elements = elements_.data(),
                          .offsets = offsets_.data() + p,
                          .heights = heights_.data() + p,
                          .panels = count,
                          .columns = std::min(count * panel_columns_, columns_ - first_column),
                          .z = z,
                          .z_stride = z_stride,
                          .rows = rows,
                          .y = y,
                          .first_column = first_column});
  }
}

template class PanelMatrix<float>;
template class PanelMatrix<double>;

void ChainSquaredNorms(const float* x, int64_t stride, int64_t rows, int64_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(SquaredNormsF32)(x, stride, rows, cols, out);
}
void ChainSquaredNorms(const double* x, int64_t stride, int64_t rows, int64_t cols, double* out) {
  HWY_DYNAMIC_DISPATCH(SquaredNormsF64)(x, stride, rows, cols, out);
}

bool VectorTargetFuses() { return HWY_DYNAMIC_DISPATCH(TargetFuses)(); }

const char* VectorTargetName() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace phimap
#endif  // HWY_ONCE
