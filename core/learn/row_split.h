// Splits rows into those learnt from and those tested.
#ifndef PHIMAP_CORE_LEARN_ROW_SPLIT_H_
#define PHIMAP_CORE_LEARN_ROW_SPLIT_H_

#include <cstdint>
#include <vector>

#include "core/linalg/matrix.h"

namespace phimap {

// One split of n rows: the numbers of those learnt from, then of those tested.
struct RowSplit {
  std::vector<int64_t> order;
  int64_t trained = 0;

  int64_t tested() const { return static_cast<int64_t>(order.size()) - trained; }
};

// A test of a share of the rows, to the nearest row and at least one either way. Each set of so
// many rows is equally likely, whatever their labels: rows that were drawn independently stay so.
// REQUIRES: n >= 2, 0 < held_out < 1.
RowSplit HeldOutSplit(int64_t n, double held_out, uint64_t seed);
// Returns fold `fold` of `folds`. Each row is tested in exactly one fold, and the sizes of folds
// differ by at most one. REQUIRES: 2 <= folds <= n, 0 <= fold < folds.
RowSplit FoldSplit(int64_t n, int folds, int fold, uint64_t seed);

// Moves the rows from the order `from` into the order `to`: row i was number from[i] and becomes
// number to[i]. In place, with one row beside. REQUIRES: both are permutations of the rows.
void ReorderRows(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                 MatrixView<double> rows);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ROW_SPLIT_H_
