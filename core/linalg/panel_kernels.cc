#include "core/linalg/panel_kernels.h"

#include <algorithm>

#include "core/linalg/matrix.h"
#include "core/linalg/panel_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/linalg/panel_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Number of rows whose sums are kept in registers. The sums of a row take two vectors; the panel
// takes two more and z one. AVX-512 has 32 registers, other targets have 16: 12 rows would spill on
// AVX2.
#if HWY_TARGET <= HWY_AVX3
constexpr int kBlockRows = 12;
#else
constexpr int kBlockRows = 6;
#endif

// Number of panels that are multiplied with the same rows at the same time. A multiply-add takes
// about four cycles, and two start in each cycle. With fewer than eight chains, the unit would be
// idle part of the time. Several panels are also several streams of memory.
constexpr int GroupPanels(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

// Whether a block prefetches the next panel while it computes: only blocks of enough rows have time
// for it.
template <int kRows, int kPanels>
constexpr bool kPrefetches = kPanels == 1 && kRows >= 4;

// Prefetches the memory that the sums will be written to. Without the prefetch, the end of a block
// would wait for results outside the second-level cache. That takes much longer than a chain of 64
// steps. Prefetches only to the second-level cache: rows of results that are 4 KiB apart would
// evict z and W from the first.
template <int kRows, int kPanels, typename T>
HWY_INLINE void FetchResults(const PanelTask<T>& task, int64_t row) {
  constexpr int64_t kLine = static_cast<int64_t>(kAlignmentBytes / sizeof(T));
  const int64_t columns = 2 * kPanels * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int r = 0; r < kRows; ++r) {
    const T* const out = task.results[row + r] + task.first_result;
    for (int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(out + j, 1, 2);
  }
}

// Sums of kRows rows × kPanels panels × two vectors.
template <int kRows, int kPanels, class V>
struct Sums {
  V left[kPanels][kRows];
  V right[kPanels][kRows];
};

template <int kRows, int kPanels, class V, class F>
HWY_INLINE void ForEachSum(Sums<kRows, kPanels, V>& sums, const F& f) {
  HWY_UNROLL(16)
  for (int p = 0; p < kPanels; ++p) {
    HWY_UNROLL(16)
    for (int r = 0; r < kRows; ++r) f(sums.left[p][r], sums.right[p][r], p, r);
  }
}

// Returns whether all values are finite. 0 · v is 0 if v is finite, and NaN otherwise. A sum that
// contains a NaN is NaN. Four sums hide the latency of the multiply-add. With one sum, the check
// took as long as the product of a row of 64 numbers.
template <typename T>
bool Finite(const T* values, int64_t count) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V zero = hn::Zero(d);
  V sums[4] = {zero, zero, zero, zero};
  int64_t j = 0;
  for (; j + 4 * lanes <= count; j += 4 * lanes) {
    for (int i = 0; i < 4; ++i) {
      sums[i] = hn::MulAdd(hn::LoadU(d, values + j + i * lanes), zero, sums[i]);
    }
  }
  const V all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  T sum = hn::GetLane(hn::SumOfLanes(d, all));
  for (; j < count; ++j) sum += values[j] * T{0};
  return sum == T{0};
}

// Sets finite[i] to false for each row i of a block that has a result which is not finite.
template <typename T>
HWY_NOINLINE void MarkRows(const PanelTask<T>& task, int64_t row, int64_t rows, int64_t columns) {
  for (int64_t i = row; i < row + rows; ++i) {
    if (!Finite(task.y[i] + task.first_column, columns)) task.finite[i] = false;
  }
}

// Writes the sums of rows `row` and later to the results.
template <int kRows, int kPanels, class D, class V, typename T>
HWY_INLINE void StoreSums(D d, Sums<kRows, kPanels, V>& sums, const PanelTask<T>& task,
                          int64_t row) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  ForEachSum(sums, [&](V& left, V& right, int p, int r) HWY_ATTR {
    T* const out = task.y[row + r] + task.first_column + 2 * p * lanes;
    hn::StoreU(left, d, out);
    hn::StoreU(right, d, out + lanes);
  });
  if (task.finite == nullptr) return;
  // A sum is not finite if one of its numbers is not; it may also overflow by itself. Uses
  // additions, to leave the multiply-add unit to the next block, and two sums, to hide the latency.
  V left_sum = hn::Zero(d);
  V right_sum = hn::Zero(d);
  ForEachSum(sums, [&](V& left, V& right, int, int) HWY_ATTR {
    left_sum = hn::Add(left_sum, left);
    right_sum = hn::Add(right_sum, right);
  });
  const V zeros = hn::Mul(hn::Add(left_sum, right_sum), hn::Zero(d));
  if (!hn::AllTrue(d, hn::Eq(zeros, hn::Zero(d)))) MarkRows(task, row, kRows, kPanels * 2 * lanes);
}

// A step of a chain adds a product, or the distance of two numbers, to a sum.
struct AddProduct {
  template <class V>
  HWY_INLINE V operator()(V z, V w, V sum) const {
    return hn::MulAdd(z, w, sum);
  }
};
struct AddDistance {
  template <class V>
  HWY_INLINE V operator()(V z, V w, V sum) const {
    return hn::Add(sum, hn::Abs(hn::Sub(z, w)));
  }
};

// Pointers to z_k in each of kRows rows. Step advances k by one.
//
// If there are few rows, each has its own pointer, and all share one index. If there are more, only
// every third row has a pointer, and the addresses of the next two rows are computed from the
// stride. With a dozen pointers, gcc reloaded some of them from memory in each step, which made the
// product 4 % slower.
template <int kRows, typename T>
class RowCursor {
 public:
  HWY_INLINE RowCursor(const T* z, int64_t stride) : stride_(stride) {
    HWY_UNROLL(16)
    for (int g = 0; g < kGroups; ++g) {
      rows_[g] = z;
      z += kEach * stride;
      KeepInRegister(rows_[g]);
    }
  }
  HWY_INLINE T operator[](int r) const { return rows_[r / kEach][r % kEach * stride_ + k_]; }
  HWY_INLINE void Step() {
    if constexpr (kEach == 1) {
      ++k_;
    } else {
      HWY_UNROLL(16)
      for (int g = 0; g < kGroups; ++g) {
        ++rows_[g];
        KeepInRegister(rows_[g]);
      }
    }
  }

 private:
  // Without this, gcc keeps several forms of each pointer, or computes them in vector registers
  // that go through memory.
  static HWY_INLINE void KeepInRegister(const T*& pointer) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
    asm("" : "+r"(pointer));
#endif
  }

  static constexpr int kEach = kRows <= 6 ? 1 : 3;
  static constexpr int kGroups = (kRows + kEach - 1) / kEach;
  const T* rows_[kGroups];
  int64_t stride_;
  int64_t k_ = 0;
};

// The rows of z that a block reads, from the column of the next step on.
template <typename T>
struct RowsAhead {
  const T* z;
  int64_t stride;
};

// Adds `steps` steps of the panels kFirst and later to the sums. Advances `rows` and `w`. If the
// block prefetches, advances `ahead` by a cache line per step.
template <int kFirst, class Step, int kRows, int kPanels, class D, class V, typename T>
HWY_INLINE void AddSteps(D d, int64_t steps, RowsAhead<T>& rows, const T* HWY_RESTRICT* w,
                         const T*& ahead, Sums<kRows, kPanels, V>& sums) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  RowCursor<kRows, T> z(rows.z, rows.stride);
  rows.z += std::max<int64_t>(steps, 0);
  for (; steps > 0; --steps) {
    if constexpr (kPrefetches<kRows, kPanels>) {
      __builtin_prefetch(ahead, 0, 2);  // to the second level
      ahead += static_cast<int64_t>(kAlignmentBytes / sizeof(T));
    }
    for (int p = kFirst; p < kPanels; ++p) {
      const V w_left = hn::Load(d, w[p]);
      const V w_right = hn::Load(d, w[p] + lanes);
      w[p] += 2 * lanes;
      for (int r = 0; r < kRows; ++r) {
        const V factor = hn::Set(d, z[r]);
        sums.left[p][r] = Step()(factor, w_left, sums.left[p][r]);
        sums.right[p][r] = Step()(factor, w_right, sums.right[p][r]);
      }
    }
    z.Step();
  }
}

// Like AddSteps with AddProduct, for the last steps of one panel, in which the left vector of the
// panel is zero. These steps are a quarter of a triangle's diagonal block. They leave out the left
// vector, because a multiply-add with zero would not change a sum. All of these steps are in one
// block of the chain, because the length of a block is a multiple of the width of a panel.
template <int kRows, class D, class V, typename T>
HWY_INLINE void AddRightProducts(D d, int64_t steps, const RowsAhead<T>& rows,
                                 const T* HWY_RESTRICT w, Sums<kRows, 1, V>& sums) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  RowCursor<kRows, T> z(rows.z, rows.stride);
  for (; steps > 0; --steps, w += 2 * lanes) {
    const V w_right = hn::Load(d, w + lanes);
    for (int r = 0; r < kRows; ++r) {
      sums.right[0][r] = hn::MulAdd(hn::Set(d, z[r]), w_right, sums.right[0][r]);
    }
    z.Step();
  }
}

// Adds one block of the chain. The panels of a triangle end at different rows, so each stage runs
// the panels that have not ended, up to the end of the shortest of them.
template <int kFirst, class Step, int kRows, int kPanels, class D, class V, typename T>
HWY_INLINE void AddBlock(D d, int64_t begin, int64_t end, const int64_t* heights,
                         RowsAhead<T>& rows, const T* HWY_RESTRICT* w, const T*& ahead,
                         Sums<kRows, kPanels, V>& sums) {
  if constexpr (kFirst < kPanels) {
    const int64_t stage_end = std::min(end, heights[kFirst]);
    AddSteps<kFirst, Step>(d, stage_end - begin, rows, w, ahead, sums);
    AddBlock<kFirst + 1, Step>(d, std::max(begin, stage_end), end, heights, rows, w, ahead, sums);
  }
}

// Computes the sums of the steps begin … begin + kChainBlock − 1, one block of a chain, starting
// from +0.
template <class Step, int kRows, int kPanels, class D, class V, typename T>
HWY_INLINE void SumBlock(D d, int64_t begin, const PanelTask<T>& task, RowsAhead<T>& rows,
                         const T* HWY_RESTRICT* w, const T*& ahead, Sums<kRows, kPanels, V>& sums) {
  ForEachSum(sums, [&](V& left, V& right, int, int) HWY_ATTR { left = right = hn::Zero(d); });
  const int64_t end = begin + kChainBlock;
  if constexpr (kPanels == 1) {
    const int64_t both_end = std::clamp(task.left_height, begin, end);
    AddSteps<0, Step>(d, both_end - begin, rows, w, ahead, sums);
    AddRightProducts(d, std::min(end, task.heights[0]) - both_end, rows, w[0], sums);
  } else {
    AddBlock<0, Step>(d, begin, end, task.heights, rows, w, ahead, sums);
  }
}

// Computes kRows rows of kPanels panels. `ahead` is memory that will be read next. kShort is true
// for chains of one block, whose sums need no memory. The function is never inlined, because it has
// several callers, and gcc takes more than three times as long to compile several copies in one
// function. HWY_UNROLL is needed because gcc unrolls a function's outer loops too late to keep the
// arrays that the loops index in registers.
template <class Step, int kRows, int kPanels, bool kShort, typename T>
HWY_NOINLINE void RunChains(const PanelTask<T>& task, int64_t row, const T* ahead) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  RowsAhead<T> rows{task.z + row * task.z_stride, task.z_stride};
  const T* HWY_RESTRICT w[kPanels];
  HWY_UNROLL(16)
  for (int p = 0; p < kPanels; ++p) w[p] = task.elements + task.offsets[p];
  FetchResults<kRows, kPanels>(task, row);
  if constexpr (kShort) {
    Sums<kRows, kPanels, V> sums;
    SumBlock<Step>(d, 0, task, rows, w, ahead, sums);
    ForEachSum(sums, [&](V& left, V& right, int, int) HWY_ATTR {
      left = hn::Add(left, hn::Zero(d));
      right = hn::Add(right, hn::Zero(d));
    });
    StoreSums(d, sums, task, row);
  } else {
    // Sums of the blocks so far. The compiler keeps them in memory while a block runs.
    Sums<kRows, kPanels, V> totals;
    ForEachSum(totals, [&](V& left, V& right, int, int) HWY_ATTR { left = right = hn::Zero(d); });
    for (int64_t begin = 0; begin < task.heights[kPanels - 1]; begin += kChainBlock) {
      Sums<kRows, kPanels, V> sums;
      SumBlock<Step>(d, begin, task, rows, w, ahead, sums);
      ForEachSum(sums, [&](V& left, V& right, int p, int r) HWY_ATTR {
        totals.left[p][r] = hn::Add(totals.left[p][r], left);
        totals.right[p][r] = hn::Add(totals.right[p][r], right);
      });
    }
    StoreSums(d, totals, task, row);
  }
}

template <class Step, int kRows, int kPanels, typename T>
HWY_INLINE void RunRows(const PanelTask<T>& task, int64_t row, const T* ahead) {
  if (task.heights[kPanels - 1] <= kChainBlock) {
    return RunChains<Step, kRows, kPanels, true>(task, row, ahead);
  }
  RunChains<Step, kRows, kPanels, false>(task, row, ahead);
}

// Computes `rows` rows of one panel, at most kRows.
template <class Step, int kRows, typename T>
HWY_INLINE void RunBlock(const PanelTask<T>& task, int64_t row, int64_t rows, const T* ahead) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return RunRows<Step, kRows, 1>(task, row, ahead);
    RunBlock<Step, kRows - 1>(task, row, rows, ahead);
  }
}

// Computes all rows of a task that has fewer rows than a block.
template <class Step, int kRows, typename T>
HWY_INLINE void RunFewRows(const PanelTask<T>& task) {
  if constexpr (kRows > 0) {
    if (task.rows != kRows) return RunFewRows<Step, kRows - 1>(task);
    constexpr int kGroup = GroupPanels(kRows);
    if (task.panels == kGroup) return RunRows<Step, kRows, kGroup>(task, 0, task.ahead);
    PanelTask<T> one = task;  // the last panels, fewer than a group
    one.panels = 1;
    for (int64_t p = 0; p < task.panels; ++p) {
      one.left_height = one.heights[0];
      RunRows<Step, kRows, 1>(one, 0, task.ahead);
      const int64_t width = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<T>()));
      one.first_column += width;
      one.first_result += width;
      ++one.offsets;
      ++one.heights;
    }
  }
}

// REQUIRES: the task has PanelsAtOnceHere(task.rows) panels, or fewer at the end of the matrix.
template <class Step, typename T>
void RunPanels(const PanelTask<T>& task) {
  if (task.rows < kBlockRows) return RunFewRows<Step, kBlockRows - 1>(task);
  // Cuts the rows into blocks of nearly the same height. For example, 32 rows become 6, 6, 5, 5, 5
  // and 5. Blocks of 6, 6, 6, 6, 6 and 2 would be slower, because the last block would have too few
  // chains to fill the unit.
  const int64_t blocks = (task.rows + kBlockRows - 1) / kBlockRows;
  constexpr int64_t kLine = static_cast<int64_t>(kAlignmentBytes / sizeof(T));
  const int64_t lines_a_step = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())) / kLine;
  for (int64_t block = 0, row = 0; block < blocks; ++block) {
    const int64_t rows = task.rows / blocks + (block < task.rows % blocks ? 1 : 0);
    // Prefetches the next panel during the first blocks, one cache line per step. Otherwise the
    // first block of that panel would wait for all of it: at d = 2,048 and 12 rows it would need 20
    // GB/s.
    const int64_t first_line = block < lines_a_step ? block * task.heights[0] * kLine : 0;
    RunBlock<Step, kBlockRows>(task, row, rows, task.ahead + first_line);
    row += rows;
  }
}

int64_t PanelsAtOnceHere(int64_t rows) {
  return rows < kBlockRows ? GroupPanels(static_cast<int>(rows)) : 1;
}

void MultiplyPanelsF32(const PanelTask<float>& task) { RunPanels<AddProduct>(task); }
void MultiplyPanelsF64(const PanelTask<double>& task) { RunPanels<AddProduct>(task); }
void L1DistancesF32(const PanelTask<float>& task) { RunPanels<AddDistance>(task); }
void L1DistancesF64(const PanelTask<double>& task) { RunPanels<AddDistance>(task); }

int64_t PanelColumnsF32() { return 2 * hn::Lanes(hn::ScalableTag<float>()); }
int64_t PanelColumnsF64() { return 2 * hn::Lanes(hn::ScalableTag<double>()); }

bool FiniteF32(const float* values, int64_t count) { return Finite(values, count); }
bool FiniteF64(const double* values, int64_t count) { return Finite(values, count); }

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {
namespace {

HWY_EXPORT(MultiplyPanelsF32);
HWY_EXPORT(MultiplyPanelsF64);
HWY_EXPORT(L1DistancesF32);
HWY_EXPORT(L1DistancesF64);
HWY_EXPORT(PanelsAtOnceHere);
HWY_EXPORT(PanelColumnsF32);
HWY_EXPORT(PanelColumnsF64);
HWY_EXPORT(FiniteF32);
HWY_EXPORT(FiniteF64);

}  // namespace

template <>
int64_t PanelColumns<float>() {
  return HWY_DYNAMIC_DISPATCH(PanelColumnsF32)();
}
template <>
int64_t PanelColumns<double>() {
  return HWY_DYNAMIC_DISPATCH(PanelColumnsF64)();
}

int64_t PanelsAtOnce(int64_t rows) { return HWY_DYNAMIC_DISPATCH(PanelsAtOnceHere)(rows); }

void MultiplyPanels(const PanelTask<float>& task) { HWY_DYNAMIC_DISPATCH(MultiplyPanelsF32)(task); }
void MultiplyPanels(const PanelTask<double>& task) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanelsF64)(task);
}
void DistancePanels(const PanelTask<float>& task) { HWY_DYNAMIC_DISPATCH(L1DistancesF32)(task); }
void DistancePanels(const PanelTask<double>& task) { HWY_DYNAMIC_DISPATCH(L1DistancesF64)(task); }

bool AllFinite(const float* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(FiniteF32)(values, count);
}
bool AllFinite(const double* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(FiniteF64)(values, count);
}

}  // namespace phimap
#endif  // HWY_ONCE
