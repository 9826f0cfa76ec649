// A tile: the rows that go through the stages of an engine together.
#ifndef PHIMAP_CORE_ENGINE_TILE_H_
#define PHIMAP_CORE_ENGINE_TILE_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/linalg/panel_product.h"

namespace phimap {

// Maximum number of dense rows of a tile, so small that a tile's features stay in the second-level
// cache.
inline constexpr int64_t kDenseTileRows = 40;
// Maximum number of rows of a tile of sparse rows that stay sparse (InputRunner::StaysSparse). The
// rows of a tile share the matrix entries that they read, so more rows per tile read less memory.
inline constexpr int64_t kSparseTileRows = kMaxSparseRows;
inline constexpr int64_t kMaxTileRows = std::max(kDenseTileRows, kSparseTileRows);

// Source and destination of a row of a tile.
struct RowPlace {
  TransformPart* part;
  int64_t row;
};

// Rows of a tile after the input stage: dense, sparse or strings. Owns nothing.
template <typename T>
struct TileRows {
  int64_t count = 0;
  // Dense rows: row i begins at x + i * stride. Null for other rows.
  const T* x = nullptr;
  int64_t stride = 0;
  // Sparse rows. `offsets` is null for other rows.
  SparseRowsRef<T> sparse;
  // Strings. Null for other rows.
  const std::string* const* strings = nullptr;

  bool is_sparse() const { return sparse.offsets != nullptr; }
  const T* row(int64_t i) const { return x + i * stride; }
};

template <typename T>
void Grow(AlignedArray<T>& array, int64_t count) {
  if (array.size() < count) array = AlignedArray<T>(count);
}

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_TILE_H_
