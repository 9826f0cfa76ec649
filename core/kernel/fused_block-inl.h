// Applies fused maps to blocks of products before the blocks are written to memory.
#if defined(PHIMAP_CORE_KERNEL_FUSED_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_FUSED_BLOCK_INL_H_
#undef PHIMAP_CORE_KERNEL_FUSED_BLOCK_INL_H_
#else
#define PHIMAP_CORE_KERNEL_FUSED_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernel/fused_map-inl.h"
#include "core/kernel/kernel_evaluator.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

// Replaces the products of a block by the arguments of the map. Returns whether all arguments are
// within the map's range. Finds the largest argument with integer instructions, because a
// floating-point comparison for each argument would occupy the execution unit of the multiply-adds.
template <class Map, typename T>
HWY_INLINE bool SetArguments(const Map& map, const KernelBlockOperands<T>& in,
                             const ProductBlock<T>& block) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t first_row = block.first_row;
  const int64_t first_column = block.first_column;
  const int64_t columns = block.columns;
  const int64_t rows = block.rows;
  // Read as integers, the bits of |t| are in the same order as the numbers |t|, and the bits of NaN
  // are larger than those of any number.
  auto largest = hn::Zero(di);
  KernelOperands<T> row{.row_norms = in.row_norms, .offsets = in.offsets};
  T* values = block.values;
  for (int64_t r = 0; r < rows; ++r, values += block.stride) {
    if (in.x_norms != nullptr) row.x_norm = in.x_norms[first_row + r];
    for (int64_t j = 0; j < columns; j += hn::Lanes(d)) {
      const auto t = map.Argument(row, first_column + j, hn::Load(d, values + j));
      largest = hn::Max(largest, hn::BitCast(di, hn::Abs(t)));
      hn::Store(t, d, values + j);
    }
  }
  const auto range = hn::BitCast(di, hn::Set(d, Map::kRange));
  return hn::AllFalse(di, hn::Gt(largest, range));
}

// Stores a whole vector, or only its first `count` elements at the end of a row.
template <class D, class V, typename T>
HWY_INLINE void StoreSome(D d, V value, int64_t count, T* out) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(value, d, out);
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value, d, buffer);
  std::copy_n(buffer, count, out);
}

// Writes the values of the map to the rows of `out`. If the map has two results, row i of `out`
// holds `count` first results, followed by `count` second results. The block holds the map's
// arguments. If kRange is 0, it holds products instead. Returns the sum of the values written. The
// sum is not finite if a value is not finite, or if the sum itself overflows.
template <class Map, bool kInRange, typename T>
HWY_INLINE T WriteValues(const Map& map, const KernelBlockOperands<T>& in,
                         const ProductBlock<T>& block, int64_t count, T* const* out) {
  const hn::ScalableTag<T> d;
  const int64_t first_column = block.first_column;
  const int64_t columns = block.columns;
  const int64_t rows = block.rows;
  T* const* const to = out + block.first_row;
  auto sum = hn::Zero(d);
  KernelOperands<T> row{.row_norms = in.row_norms, .offsets = in.offsets};
  const T* values = block.values;
  for (int64_t r = 0; r < rows; ++r, values += block.stride) {
    if (in.x_norms != nullptr) row.x_norm = in.x_norms[block.first_row + r];
    T* const first = to[r] + first_column;
    for (int64_t j = 0; j < columns; j += hn::Lanes(d)) {
      auto t = hn::Load(d, values + j);
      if constexpr (Map::kRange == 0) t = map.Argument(row, first_column + j, t);
      auto second = hn::Zero(d);
      const auto value = map.template Apply<kInRange>(t, second);
      sum = hn::Add(sum, value);
      StoreSome(d, value, columns - j, first + j);
      if constexpr (Map::kSecond) {
        sum = hn::Add(sum, second);
        StoreSome(d, second, columns - j, first + count + j);
      }
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class Map, typename T>
void MapBlock(const KernelProgram& program, const KernelBlockOperands<T>& in,
              const ProductBlock<T>& block, int64_t count, T* const* out, bool* finite) {
  const Map map(program);
  bool in_range = false;
  if constexpr (Map::kRange > 0) in_range = SetArguments(map, in, block);
  const T sum = in_range ? WriteValues<Map, true>(map, in, block, count, out)
                         : WriteValues<Map, false>(map, in, block, count, out);
  if (finite == nullptr || std::isfinite(sum)) return;
  for (int64_t i = block.first_row; i < block.first_row + block.rows; ++i) {
    const T* const row = out[i] + block.first_column;
    if (!AllFinite(row, block.columns) ||
        (Map::kSecond && !AllFinite(row + count, block.columns))) {
      finite[i] = false;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
