#include "core/linalg/sparse_symmetric.h"

#include <algorithm>
#include <utility>

#include "core/status/check.h"
#include "core/status/status_macros.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/linalg/sparse_symmetric.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"

// The following is shared by all targets, so it is outside of their namespaces.
#ifndef PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_ONCE
#define PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_ONCE
namespace phimap {

// Numbers of vectors that go through the matrix together. The vectors lie side by side: their
// numbers at one index fill one or two cache lines.
constexpr int64_t kNarrow = 16;
constexpr int64_t kWide = 32;

// The entries of rows first … first + rows − 1 on one side of the diagonal.
struct SparseEntries {
  const int64_t* offsets;
  const uint16_t* columns;
  const float* values;
};

struct SparseTask {
  const float* diagonal;  // from row `first` on
  SparseEntries below;
  SparseEntries above;
  int64_t first;
  int64_t rows;
  const float* v;  // all rows × width
  float* out;      // rows × width
};

}  // namespace phimap
#endif  // PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_ONCE

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds a_ij·v_j to the sums for each entry of row r on one side of the diagonal.
template <int64_t kWidth, class D, class V>
HWY_INLINE void AddEntries(D d, const SparseEntries& entries, int64_t r, const float* v, V* sum) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t k = entries.offsets[r]; k < entries.offsets[r + 1]; ++k) {
    const V a = hn::Set(d, entries.values[k]);
    const float* const from = v + entries.columns[k] * kWidth;
    for (int64_t n = 0; n < kWidth / kLanes; ++n) {
      sum[n] = hn::MulAdd(a, hn::Load(d, from + n * kLanes), sum[n]);
    }
  }
}

// Keeps the sums of a row in registers until all its entries are added.
template <int64_t kWidth>
HWY_INLINE void Accumulate(const SparseTask& task) {
  const hn::CappedTag<float, kNarrow> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int64_t kVectors = kWidth / kLanes;
  for (int64_t r = 0; r < task.rows; ++r) {
    V sum[kVectors];
    const V diagonal = hn::Set(d, task.diagonal[r]);
    const float* const own = task.v + (task.first + r) * kWidth;
    for (int64_t n = 0; n < kVectors; ++n) {
      sum[n] = hn::Mul(diagonal, hn::Load(d, own + n * kLanes));
    }
    AddEntries<kWidth>(d, task.below, r, task.v, sum);
    AddEntries<kWidth>(d, task.above, r, task.v, sum);
    float* const to = task.out + r * kWidth;
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

namespace {

// Minimum entries of a tile of a product: about 0.1 ms of work, much longer than a thread takes to
// start.
constexpr int64_t kTileEntries = 20'000;
// Rows per tile, for putting vectors side by side and for mirroring entries.
constexpr int64_t kTileRows = 1024;

}  // namespace

SparseSymmetric::SparseSymmetric(int64_t rows) : rows_(rows) {
  PHIMAP_CHECK(1 <= rows && rows <= kMaxRows);
  diagonal_.resize(static_cast<size_t>(rows));
  blocks_.resize(static_cast<size_t>((rows + kBlockRows - 1) / kBlockRows));
}

void SparseSymmetric::AddRow(int64_t i, float diagonal, const std::vector<uint16_t>& columns,
                             const std::vector<float>& values) {
  PHIMAP_CHECK(0 <= i && i < rows_ && columns.size() == values.size());
  PHIMAP_CHECK(columns.empty() || columns.back() < i);
  Entries& below = blocks_[i / kBlockRows].below;
  PHIMAP_CHECK(static_cast<int64_t>(below.offsets.size()) == i % kBlockRows + 1);
  diagonal_[i] = diagonal;
  below.columns.insert(below.columns.end(), columns.begin(), columns.end());
  below.values.insert(below.values.end(), values.begin(), values.end());
  below.offsets.push_back(static_cast<int64_t>(below.values.size()));
  if (below.offsets.size() <= kBlockRows && i + 1 < rows_) return;
  below.columns.shrink_to_fit();
  below.values.shrink_to_fit();
}

template <class F>
void SparseSymmetric::ForEachBelow(int64_t begin, int64_t end, const F& f) const {
  for (int64_t i = begin + 1; i < rows_; ++i) {
    const Entries& below = blocks_[i / kBlockRows].below;
    const int64_t last = below.offsets[i % kBlockRows + 1];
    int64_t k = std::lower_bound(below.columns.begin() + below.offsets[i % kBlockRows],
                                 below.columns.begin() + last, begin) -
                below.columns.begin();
    for (; k < last && below.columns[k] < end; ++k) f(i, below.columns[k], below.values[k]);
  }
}

void SparseSymmetric::MirrorBlocks(int64_t begin, int64_t end) {
  const int64_t first = FirstRow(begin);
  std::vector<int64_t> counts(static_cast<size_t>(FirstRow(end) - first));
  ForEachBelow(first, FirstRow(end), [&](int64_t, int64_t j, float) { ++counts[j - first]; });
  // Position of each row's next entry.
  std::vector<int64_t> next(counts.size());
  for (int64_t b = begin; b < end; ++b) {
    Entries& above = blocks_[b].above;
    above.offsets = {0};
    for (int64_t j = FirstRow(b); j < FirstRow(b + 1); ++j) {
      next[j - first] = above.offsets.back();
      above.offsets.push_back(above.offsets.back() + counts[j - first]);
    }
    above.columns.resize(static_cast<size_t>(above.offsets.back()));
    above.values.resize(static_cast<size_t>(above.offsets.back()));
  }
  ForEachBelow(first, FirstRow(end), [&](int64_t i, int64_t j, float value) {
    Entries& above = blocks_[j / kBlockRows].above;
    const int64_t k = next[j - first]++;
    above.columns[k] = static_cast<uint16_t>(i);
    above.values[k] = value;
  });
}

absl::Status SparseSymmetric::Mirror(const TileControl& control) {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const int64_t rows = FirstRow(static_cast<int64_t>(b) + 1) - FirstRow(static_cast<int64_t>(b));
    PHIMAP_CHECK(static_cast<int64_t>(blocks_[b].below.offsets.size()) == rows + 1);
  }
  return ForEachRange(static_cast<int64_t>(blocks_.size()), kTileRows / kBlockRows, control,
                      [&](int64_t begin, int64_t count) { MirrorBlocks(begin, begin + count); });
}

int64_t SparseSymmetric::stored() const {
  int64_t count = rows_;
  for (const Block& block : blocks_) count += static_cast<int64_t>(block.below.values.size());
  return count;
}

void SparseSymmetric::MultiplyBlock(int64_t b, int64_t width, const float* v, float* sums) const {
  const auto entries = [](const Entries& side) {
    return SparseEntries{side.offsets.data(), side.columns.data(), side.values.data()};
  };
  const int64_t first = FirstRow(b);
  const SparseTask task{.diagonal = diagonal_.data() + first,
                        .below = entries(blocks_[b].below),
                        .above = entries(blocks_[b].above),
                        .first = first,
                        .rows = FirstRow(b + 1) - first,
                        .v = v,
                        .out = sums};
  if (width == kNarrow) {
    HWY_DYNAMIC_DISPATCH(AccumulateNarrow)(task);
  } else {
    HWY_DYNAMIC_DISPATCH(AccumulateWide)(task);
  }
}

absl::Status SparseSymmetric::Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                                       const TileControl& control) const {
  PHIMAP_CHECK(v.cols() == rows_ && out.cols() == rows_ && v.rows() == out.rows());
  PHIMAP_CHECK(blocks_.front().above.offsets.size() == blocks_.front().below.offsets.size());
  const int64_t width = v.rows() <= kNarrow ? kNarrow : kWide;
  const auto blocks = static_cast<int64_t>(blocks_.size());
  const int64_t blocks_of_tile = kTileEntries / (2 * stored() / blocks + 1) + 1;
  AlignedArray<float> from(rows_ * width);
  for (int64_t first = 0; first < v.rows(); first += width) {
    const int64_t count = std::min(width, v.rows() - first);
    const auto interleave = [&](int64_t begin, int64_t rows) {
      std::fill_n(from.data() + begin * width, rows * width, 0.0f);
      for (int64_t n = 0; n < count; ++n) {
        for (int64_t i = begin; i < begin + rows; ++i) {
          from.data()[i * width + n] = static_cast<float>(v(first + n, i));
        }
      }
    };
    PHIMAP_RETURN_IF_ERROR(ForEachRange(rows_, kTileRows, control, interleave));
    const auto multiply = [&](int64_t begin, int64_t tile_blocks) {
      AlignedArray<float> sums(kBlockRows * width);
      for (int64_t b = begin; b < begin + tile_blocks; ++b) {
        MultiplyBlock(b, width, from.data(), sums.data());
        for (int64_t n = 0; n < count; ++n) {
          for (int64_t i = FirstRow(b); i < FirstRow(b + 1); ++i) {
            out(first + n, i) = sums.data()[(i - FirstRow(b)) * width + n];
          }
        }
      }
    };
    PHIMAP_RETURN_IF_ERROR(ForEachRange(blocks, blocks_of_tile, control, multiply));
  }
  return absl::OkStatus();
}

}  // namespace phimap
#endif  // HWY_ONCE
