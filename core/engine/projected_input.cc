#include "core/engine/projected_input.h"

#include <vector>

#include "core/engine/sparse_tile.h"

namespace phimap {

template <typename T>
struct ProjectedInput<T>::Memory {
  AlignedArray<T> x;
  AlignedArray<double> rows;  // (x − c) ∘ s of dense rows
  SparseTile<double> sparse;  // (x − c) ∘ s of sparse rows
  AlignedArray<double> projected;
  std::vector<double*> projected_rows;
};

template <typename T>
ProjectedInput<T>::ProjectedInput(const EngineInput& input, const InputStage& stage)
    : InputRunner<T>(input, /*stays_sparse=*/stage.shift.empty()),
      scaling_(stage),
      projection_(PanelMatrix<double>::Pack(stage.projection.view())),
      stride_(SpreadStride<T>(stage.projection.cols())) {}

template <typename T>
TileRows<T> ProjectedInput<T>::Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const {
  Memory& memory = scratch.Of<Memory>();
  const int64_t count = tile.size();
  const int64_t columns = projection_.columns();
  Grow(memory.projected, kMaxTileRows * columns);
  memory.projected_rows.resize(kMaxTileRows);
  for (int64_t i = 0; i < count; ++i) {
    memory.projected_rows[i] = memory.projected.data() + i * columns;
  }
  if (this->StaysSparse(tile[0].part->rows)) {
    ProjectSparse(tile, memory);
  } else {
    ProjectDense(tile, memory);
  }
  Grow(memory.x, kMaxTileRows * stride_);
  for (int64_t i = 0; i < count; ++i) {
    RoundRow(memory.projected_rows[i], columns, memory.x.data() + i * stride_);
  }
  return {.count = count, .x = memory.x.data(), .stride = stride_};
}

template <typename T>
void ProjectedInput<T>::ProjectDense(absl::Span<const RowPlace> tile, Memory& memory) const {
  const int64_t columns = this->input().columns;
  Grow(memory.rows, kDenseTileRows * columns);
  double* row = memory.rows.data();
  for (const RowPlace& place : tile) {
    place.part->rows.CopyRow(place.row, row);
    scaling_.Apply(row);
    row += columns;
  }
  projection_.Multiply(memory.rows.data(), columns, tile.size(), memory.projected_rows.data());
}

template <typename T>
void ProjectedInput<T>::ProjectSparse(absl::Span<const RowPlace> tile, Memory& memory) const {
  memory.sparse.Clear();
  for (const RowPlace& place : tile) {
    memory.sparse.Add(*place.part->rows.sparse(), place.row, scaling_.scale());
  }
  projection_.MultiplySparse(memory.sparse.ref(), memory.projected_rows.data());
}

template class ProjectedInput<float>;
template class ProjectedInput<double>;

}  // namespace phimap
