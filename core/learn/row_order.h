// Orders of rows: the one in which a learner visits them, and the split into training and test
// rows.
#ifndef PHIMAP_CORE_LEARN_ROW_ORDER_H_
#define PHIMAP_CORE_LEARN_ROW_ORDER_H_

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/random/stream_ids.h"

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

// One split of n rows: the numbers of the training rows, then those of the test rows.
struct RowSplit {
  std::vector<int64_t> order;
  int64_t trained = 0;

  int64_t tested() const { return static_cast<int64_t>(order.size()) - trained; }
};

// Returns a split whose test part has about n·held_out rows, rounded to the nearest row. Both parts
// have at least one row. Each set of test rows of that size is equally likely, whatever the labels.
// So rows that were drawn independently stay independent. REQUIRES: n >= 2, 0 < held_out < 1.
RowSplit HeldOutSplit(int64_t n, double held_out, uint64_t seed);
// Returns fold `fold` of `folds`. Each row is tested in exactly one fold, and the sizes of folds
// differ by at most one. REQUIRES: 2 <= folds <= n, 0 <= fold < folds.
RowSplit FoldSplit(int64_t n, int folds, int fold, uint64_t seed);

// Moves the rows from the order `from` into the order `to`. Before the call, position i holds row
// number from[i]; afterwards, it holds row number to[i]. Works in place, with one temporary row.
// REQUIRES: both are permutations of the row numbers.
void ReorderRows(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                 MatrixView<double> rows);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ROW_ORDER_H_
