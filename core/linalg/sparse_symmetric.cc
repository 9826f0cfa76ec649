#include "core/linalg/sparse_symmetric.h"

#include <algorithm>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/linalg/sparse_symmetric.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h, which includes this file once for each target.
#include "hwy/highway.h"

// Shared by all targets, so outside of their namespaces.
#ifndef PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_ONCE
#define PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_ONCE
namespace phimap {

// Vectors that go through the matrix together, side by side: the numbers of all of them at one
// index fill one or two cache lines.
constexpr int64_t kNarrow = 16;
constexpr int64_t kWide = 32;

struct SparseTask {
  const float* diagonal;
  const int64_t* offsets;
  const uint16_t* columns;
  const float* values;
  int64_t rows;
  const float* v;  // rows × width
  float* out;      // the same
};

}  // namespace phimap
#endif  // PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_ONCE

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// An entry a_ij below the diagonal, j < i, adds a_ij·v_j to row i, which is kept in registers, and
// a_ij·v_i to row j. Row i is first written when its own turn comes and added to by the rows after
// it alone, so that each sum has one order.
template <int64_t kWidth>
HWY_INLINE void Accumulate(const SparseTask& task) {
  const hn::CappedTag<float, kNarrow> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int64_t kVectors = kWidth / kLanes;
  for (int64_t i = 0; i < task.rows; ++i) {
    V own[kVectors];
    V sum[kVectors];
    const V diagonal = hn::Set(d, task.diagonal[i]);
    for (int64_t n = 0; n < kVectors; ++n) {
      own[n] = hn::Load(d, task.v + i * kWidth + n * kLanes);
      sum[n] = hn::Mul(diagonal, own[n]);
    }
    for (int64_t k = task.offsets[i]; k < task.offsets[i + 1]; ++k) {
      const int64_t j = task.columns[k];
      const V a = hn::Set(d, task.values[k]);
      const float* const from = task.v + j * kWidth;
      float* const to = task.out + j * kWidth;
      for (int64_t n = 0; n < kVectors; ++n) {
        sum[n] = hn::MulAdd(a, hn::Load(d, from + n * kLanes), sum[n]);
        hn::Store(hn::MulAdd(a, own[n], hn::Load(d, to + n * kLanes)), d, to + n * kLanes);
      }
    }
    float* const to = task.out + i * kWidth;
    for (int64_t n = 0; n < kVectors; ++n) hn::Store(sum[n], d, to + n * kLanes);
  }
}

void AccumulateNarrow(const SparseTask& task) { Accumulate<kNarrow>(task); }
void AccumulateWide(const SparseTask& task) { Accumulate<kWide>(task); }

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {

HWY_EXPORT(AccumulateNarrow);
HWY_EXPORT(AccumulateWide);

SparseSymmetric::SparseSymmetric(int64_t rows) : rows_(rows), offsets_({0}) {
  PHIMAP_CHECK(1 <= rows && rows <= kMaxRows);
}

void SparseSymmetric::AddRow(float diagonal, const std::vector<uint16_t>& columns,
                             const std::vector<float>& values) {
  const auto row = static_cast<int64_t>(diagonal_.size());
  PHIMAP_CHECK(row < rows_ && columns.size() == values.size());
  PHIMAP_CHECK(columns.empty() || columns.back() < row);
  diagonal_.push_back(diagonal);
  columns_.insert(columns_.end(), columns.begin(), columns.end());
  values_.insert(values_.end(), values.begin(), values.end());
  offsets_.push_back(static_cast<int64_t>(values_.size()));
}

void SparseSymmetric::Multiply(ConstMatrixView<double> v, MatrixView<double> out) const {
  PHIMAP_CHECK(static_cast<int64_t>(diagonal_.size()) == rows_);
  PHIMAP_CHECK(v.cols() == rows_ && out.cols() == rows_ && v.rows() == out.rows());
  const int64_t width = v.rows() <= kNarrow ? kNarrow : kWide;
  AlignedArray<float> from(rows_ * width);
  AlignedArray<float> to(rows_ * width);
  for (int64_t first = 0; first < v.rows(); first += width) {
    const int64_t count = std::min(width, v.rows() - first);
    std::fill_n(from.data(), from.size(), 0.0f);
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t i = 0; i < rows_; ++i) {
        from.data()[i * width + n] = static_cast<float>(v(first + n, i));
      }
    }
    const SparseTask task{diagonal_.data(), offsets_.data(), columns_.data(), values_.data(), rows_,
                          from.data(),      to.data()};
    if (width == kNarrow) {
      HWY_DYNAMIC_DISPATCH(AccumulateNarrow)(task);
    } else {
      HWY_DYNAMIC_DISPATCH(AccumulateWide)(task);
    }
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t i = 0; i < rows_; ++i) out(first + n, i) = to.data()[i * width + n];
    }
  }
}

}  // namespace phimap
#endif  // HWY_ONCE
