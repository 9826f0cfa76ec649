// Rows of numbers side by side, in memory that grows as needed.
#ifndef PHIMAP_CORE_ENGINE_NUMBER_ROWS_H_
#define PHIMAP_CORE_ENGINE_NUMBER_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/engine/tile.h"
#include "core/linalg/matrix.h"

namespace phimap {

template <typename T>
class NumberRows {
 public:
  // Returns memory for `rows` rows of `columns` numbers, row i at [i]. Earlier contents are lost.
  T* const* Allocate(int64_t rows, int64_t columns) {
    Grow(numbers_, rows * columns);
    rows_.resize(rows);
    for (int64_t i = 0; i < rows; ++i) rows_[i] = numbers_.data() + i * columns;
    return rows_.data();
  }
  T* const* rows() const { return rows_.data(); }

 private:
  AlignedArray<T> numbers_;
  std::vector<T*> rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_NUMBER_ROWS_H_
