// The order in which a learner visits its rows.
#ifndef PHIMAP_CORE_LEARN_ROW_ORDER_H_
#define PHIMAP_CORE_LEARN_ROW_ORDER_H_

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/random/random_stream.h"

namespace phimap {

// Permutations of 0 … n−1, each uniform and independent of earlier ones, drawn from
// StreamId::kTrainingOrder of a seed. Not thread-safe.
class RowOrder {
 public:
  RowOrder(int64_t n, uint64_t seed)
      : cursor_(RandomStream(seed, StreamId::kTrainingOrder)), rows_(static_cast<size_t>(n)) {
    std::iota(rows_.begin(), rows_.end(), int64_t{0});
  }

  // Returns the next permutation: a Fisher–Yates shuffle of the previous one, with n − 1 draws. The
  // result is valid until the next call.
  const std::vector<int64_t>& Next() {
    for (size_t left = rows_.size(); left > 1; --left) {
      std::swap(rows_[left - 1], rows_[cursor_.UniformBelow(left)]);
    }
    return rows_;
  }

 private:
  RandomCursor cursor_;
  std::vector<int64_t> rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ROW_ORDER_H_
