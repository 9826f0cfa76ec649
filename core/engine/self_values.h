// Values of single rows that a kernel program reads in addition to the values of pairs of rows.
#ifndef PHIMAP_CORE_ENGINE_SELF_VALUES_H_
#define PHIMAP_CORE_ENGINE_SELF_VALUES_H_

#include <cstdint>
#include <vector>

#include "core/engine/tile.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Memory for v_m(x, x) of each pair value m and f_m(x) of each factor m, for some rows. The owner
// fills it.
template <typename T>
class SelfValues {
 public:
  // Reserves memory for `rows` rows. Earlier contents are lost.
  void Reserve(int64_t pair_values, int64_t factors, int64_t rows) {
    Grow(numbers_, (pair_values + factors) * rows);
    rows_.clear();
    for (int64_t m = 0; m < pair_values + factors; ++m) {
      rows_.push_back(numbers_.data() + m * rows);
    }
    pair_values_ = pair_values;
  }

  // pair_values()[m][i] = v_m(x_i, x_i), factors()[m][i] = f_m(x_i).
  T* const* pair_values() const { return rows_.data(); }
  T* const* factors() const { return rows_.data() + pair_values_; }
  int64_t memory_bytes() const { return numbers_.size() * static_cast<int64_t>(sizeof(T)); }

 private:
  AlignedArray<T> numbers_;
  std::vector<T*> rows_;
  int64_t pair_values_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_SELF_VALUES_H_
