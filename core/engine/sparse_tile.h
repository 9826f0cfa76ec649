// Sparse rows of a tile after an input stage without a shift.
#ifndef PHIMAP_CORE_ENGINE_SPARSE_TILE_H_
#define PHIMAP_CORE_ENGINE_SPARSE_TILE_H_

#include <cstdint>
#include <vector>

#include "core/linalg/panel_product.h"
#include "core/plan/examples.h"
#include "core/status/check.h"

namespace phimap {

// Grows as needed and keeps its memory.
template <typename T>
class SparseTile {
 public:
  void Clear() {
    offsets_.assign(1, 0);
    columns_.clear();
    values_.clear();
  }
  // Adds row i of `rows`, with each value scaled in float64 and rounded once. `scale`: a number for
  // each column, or empty. REQUIRES: the tile has fewer than kMaxSparseRows rows.
  void Add(const SparseRowsView& rows, int64_t i, const std::vector<double>& scale) {
    PHIMAP_CHECK(static_cast<int64_t>(offsets_.size()) <= kMaxSparseRows);
    for (int64_t entry = rows.offset(i); entry < rows.offset(i + 1); ++entry) {
      const int32_t column = rows.column(entry);
      double value = rows.value(entry);
      if (!scale.empty()) value *= scale[column];
      columns_.push_back(column);
      values_.push_back(static_cast<T>(value));
    }
    offsets_.push_back(static_cast<int64_t>(values_.size()));
  }
  bool empty() const { return offsets_.size() <= 1; }
  SparseRowsRef<T> ref() const {
    return {static_cast<int64_t>(offsets_.size()) - 1, offsets_.data(), columns_.data(),
            values_.data()};
  }

 private:
  std::vector<int64_t> offsets_;
  std::vector<int32_t> columns_;
  std::vector<T> values_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_SPARSE_TILE_H_
