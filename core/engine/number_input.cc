#include "core/engine/number_input.h"

#include <cstring>
#include <vector>

#include "core/engine/sparse_tile.h"

namespace phimap {

template <typename T>
struct NumberInput<T>::Memory {
  AlignedArray<T> x;
  SparseTile<T> sparse;
  std::vector<double> row;
};

template <typename T>
NumberInput<T>::NumberInput(const EngineInput& input, const InputStage& stage, bool stays_sparse)
    : InputRunner<T>(input, stays_sparse),
      scaling_(stage),
      stride_(SpreadStride<T>(input.columns)) {}

template <typename T>
TileRows<T> NumberInput<T>::Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const {
  Memory& memory = scratch.Of<Memory>();
  if (this->StaysSparse(tile[0].part->rows)) return RunSparse(tile, memory);
  constexpr FloatType kType = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  const int64_t columns = this->input().columns;
  Grow(memory.x, kDenseTileRows * stride_);
  memory.row.resize(columns + 1);  // remote kernel values may have one more
  T* x = memory.x.data();
  for (const RowPlace& place : tile) {
    const RowsView* const source = place.part->rows.dense();
    if (scaling_.empty() && source != nullptr && source->type == kType) {
      std::memcpy(x, source->Row(place.row), sizeof(T) * columns);
    } else {
      place.part->rows.CopyRow(place.row, memory.row.data());
      scaling_.Apply(memory.row.data());
      RoundRow(memory.row.data(), columns, x);
    }
    x += stride_;
  }
  return {.count = static_cast<int64_t>(tile.size()), .x = memory.x.data(), .stride = stride_};
}

template <typename T>
TileRows<T> NumberInput<T>::RunSparse(absl::Span<const RowPlace> tile, Memory& memory) const {
  memory.sparse.Clear();
  for (const RowPlace& place : tile) {
    memory.sparse.Add(*place.part->rows.sparse(), place.row, scaling_.scale());
  }
  return {.count = static_cast<int64_t>(tile.size()), .sparse = memory.sparse.ref()};
}

template class NumberInput<float>;
template class NumberInput<double>;

}  // namespace phimap
