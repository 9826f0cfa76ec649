// Products of panels with sparse rows (panel_product.h).
//
// Each block of 512 rows of W is applied to all rows of z before the next block. So the parts of W
// that several rows of z need are read from memory only once, and then from the second-level cache.
// For one row of z, the sums of as many panels as fit are kept in registers. Only the rows of W
// that the row's entries select are read. At the end of the block, the sums are added to the row's
// totals. These steps are exactly the steps of a dense chain in which z_k ≠ 0, in the order of k.
#include <algorithm>

#include "core/linalg/panel_product.h"
#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/linalg/panel_sparse.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"

// The following is shared by all targets, so it is outside of their namespaces.
#ifndef PHIMAP_CORE_LINALG_PANEL_SPARSE_ONCE
#define PHIMAP_CORE_LINALG_PANEL_SPARSE_ONCE
namespace phimap {

// Adjacent panels of the same height and the sparse rows they are applied to.
template <typename T>
struct SparseTask {
  const T* elements;
  int64_t panels;
  int64_t panel_columns;
  int64_t depth;
  int64_t columns;  // columns of these panels that W has
  SparseRowsRef<T> z;
  T* const* y;  // y[i] + first_column is where row i's result goes
  int64_t first_column;
};

}  // namespace phimap
#endif  // PHIMAP_CORE_LINALG_PANEL_SPARSE_ONCE

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Number of panels whose sums one row keeps in registers, two vectors each. Four panels of a block
// of float32 are 256 KiB on AVX-512, so that this block and the next stay in the second-level
// cache. Eight panels were no faster with 1 % nonzeros, and a fifth slower with 30 %.
constexpr int kMostPanels = 4;

// Returns the first entry of the row, from `entry` on, whose column is `end` or more.
template <typename T>
HWY_INLINE int64_t EndOfBlock(const SparseRowsRef<T>& z, int64_t row, int64_t entry, int64_t end) {
  const int64_t last = z.offsets[row + 1];
  while (entry < last && z.columns[entry] < end) ++entry;
  return entry;
}

// Prefetches, into the second-level cache, the rows of kPanels panels that the entries begin … end
// − 1 are multiplied by.
template <int kPanels, typename T>
HWY_INLINE void Fetch(const SparseTask<T>& task, int64_t begin, int64_t end) {
  constexpr int64_t kLine = static_cast<int64_t>(kAlignmentBytes / sizeof(T));
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t entry = begin; entry < end; ++entry) {
    const T* const w = task.elements + task.z.columns[entry] * width;
    for (int p = 0; p < kPanels; ++p) {
      const T* const panel = w + p * task.depth * width;
      for (int64_t j = 0; j < width; j += kLine) __builtin_prefetch(panel + j, 0, 2);
    }
  }
}

// Adds the products of the entries begin … end − 1, of one row and one block, to the row's totals.
template <int kPanels, typename T>
HWY_INLINE void AddBlock(const SparseTask<T>& task, int64_t begin, int64_t end,
                         T* HWY_RESTRICT totals) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t panel_size = task.depth * 2 * lanes;
  V left[kPanels];
  V right[kPanels];
  for (int p = 0; p < kPanels; ++p) left[p] = right[p] = hn::Zero(d);
  for (int64_t entry = begin; entry < end; ++entry) {
    const V factor = hn::Set(d, task.z.values[entry]);
    const T* const w = task.elements + task.z.columns[entry] * 2 * lanes;
    for (int p = 0; p < kPanels; ++p) {
      left[p] = hn::MulAdd(factor, hn::Load(d, w + p * panel_size), left[p]);
      right[p] = hn::MulAdd(factor, hn::Load(d, w + p * panel_size + lanes), right[p]);
    }
  }
  for (int p = 0; p < kPanels; ++p, totals += 2 * lanes) {
    hn::Store(hn::Add(hn::Load(d, totals), left[p]), d, totals);
    hn::Store(hn::Add(hn::Load(d, totals + lanes), right[p]), d, totals + lanes);
  }
}

template <int kPanels, typename T>
void RunGroup(const SparseTask<T>& task) {
  const int64_t rows = task.z.rows;
  const int64_t width = kPanels * 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  HWY_ALIGN T totals[kMaxSparseRows * kPanels * 2 * HWY_MAX_BYTES / sizeof(T)];
  std::fill_n(totals, rows * width, T{0});
  // The entries begin[i] … end[i] − 1 of row i are in the current block.
  int64_t begin[kMaxSparseRows];
  int64_t end[kMaxSparseRows];
  for (int64_t i = 0; i < rows; ++i) {
    begin[i] = task.z.offsets[i];
    end[i] = EndOfBlock(task.z, i, begin[i], kChainBlock);
    Fetch<kPanels>(task, begin[i], end[i]);
  }
  for (int64_t block = kChainBlock; block < task.depth + kChainBlock; block += kChainBlock) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t next = EndOfBlock(task.z, i, end[i], block + kChainBlock);
      Fetch<kPanels>(task, end[i], next);
      if (begin[i] < end[i]) AddBlock<kPanels>(task, begin[i], end[i], totals + i * width);
      begin[i] = end[i];
      end[i] = next;
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(totals + i * width, task.columns, task.y[i] + task.first_column);
  }
}

template <int kPanels, typename T>
void RunGroups(SparseTask<T> task) {
  const int64_t width = task.panel_columns;
  for (; task.panels >= kPanels; task.panels -= kPanels) {
    SparseTask<T> group = task;
    group.columns = std::min(task.columns, kPanels * width);
    RunGroup<kPanels>(group);
    task.elements += kPanels * task.depth * width;
    task.first_column += group.columns;
    task.columns -= group.columns;
  }
  if constexpr (kPanels > 1) RunGroups<kPanels / 2>(task);
}

template <typename T>
void RunSparse(const SparseTask<T>& task) {
  // REQUIRES: the panels were packed for this target.
  PHIMAP_CHECK(task.panel_columns == 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())));
  RunGroups<kMostPanels>(task);
}

void MultiplySparseF32(const SparseTask<float>& task) { RunSparse(task); }
void MultiplySparseF64(const SparseTask<double>& task) { RunSparse(task); }

// Computes squared norms by the chains of dense rows, with steps only for the entries.
template <typename T>
void SquaredNorms(const SparseRowsRef<T>& x, T* out) {
  const hn::CappedTag<T, 1> d;
  for (int64_t i = 0; i < x.rows; ++i) {
    T total = 0;
    const int64_t end = x.offsets[i + 1];
    for (int64_t entry = x.offsets[i]; entry < end;) {
      const int64_t block_end = (x.columns[entry] / kChainBlock + 1) * kChainBlock;
      T sum = 0;
      for (; entry < end && x.columns[entry] < block_end; ++entry) {
        const auto v = hn::Set(d, x.values[entry]);
        sum = hn::GetLane(hn::MulAdd(v, v, hn::Set(d, sum)));
      }
      total += sum;
    }
    out[i] = total;
  }
}

void SparseSquaredNormsF32(const SparseRowsRef<float>& x, float* out) { SquaredNorms(x, out); }
void SparseSquaredNormsF64(const SparseRowsRef<double>& x, double* out) { SquaredNorms(x, out); }

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {
namespace {

HWY_EXPORT(MultiplySparseF32);
HWY_EXPORT(MultiplySparseF64);
HWY_EXPORT(SparseSquaredNormsF32);
HWY_EXPORT(SparseSquaredNormsF64);

void RunTask(const SparseTask<float>& task) { HWY_DYNAMIC_DISPATCH(MultiplySparseF32)(task); }
void RunTask(const SparseTask<double>& task) { HWY_DYNAMIC_DISPATCH(MultiplySparseF64)(task); }

}  // namespace

template <typename T>
void PanelMatrix<T>::MultiplySparse(const SparseRowsRef<T>& z, T* const* y) const {
  PHIMAP_CHECK(!triangular_ && z.rows <= kMaxSparseRows);
  if (panels() == 0) return;
  RunTask({.elements = elements_.data(),
           .panels = panels(),
           .panel_columns = panel_columns_,
           .depth = depth_,
           .columns = columns_,
           .z = z,
           .y = y,
           .first_column = 0});
}

template void PanelMatrix<float>::MultiplySparse(const SparseRowsRef<float>& z,
                                                 float* const* y) const;
template void PanelMatrix<double>::MultiplySparse(const SparseRowsRef<double>& z,
                                                  double* const* y) const;

void ChainSquaredNorms(const SparseRowsRef<float>& x, float* out) {
  HWY_DYNAMIC_DISPATCH(SparseSquaredNormsF32)(x, out);
}
void ChainSquaredNorms(const SparseRowsRef<double>& x, double* out) {
  HWY_DYNAMIC_DISPATCH(SparseSquaredNormsF64)(x, out);
}

}  // namespace phimap
#endif  // HWY_ONCE
