#include "core/learn/row_order.h"

#include <algorithm>
#include <cmath>

#include "core/random/stream_ids.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Returns the split in which positions begin … end − 1 of the shuffled rows are tested.
RowSplit SplitAt(int64_t n, int64_t begin, int64_t end, uint64_t seed) {
  const std::vector<int64_t> shuffled =
      FirstOfPermutation(n, n, RandomStream(seed, StreamId::kEvaluationSplit));
  RowSplit split;
  split.trained = n - (end - begin);
  split.order.reserve(shuffled.size());
  split.order.insert(split.order.end(), shuffled.begin(), shuffled.begin() + begin);
  split.order.insert(split.order.end(), shuffled.begin() + end, shuffled.end());
  split.order.insert(split.order.end(), shuffled.begin() + begin, shuffled.begin() + end);
  return split;
}

}  // namespace

RowSplit HeldOutSplit(int64_t n, double held_out, uint64_t seed) {
  PHIMAP_CHECK(n >= 2 && held_out > 0 && held_out < 1);
  const int64_t tested = std::llround(held_out * static_cast<double>(n));
  return SplitAt(n, 0, std::clamp<int64_t>(tested, 1, n - 1), seed);
}

RowSplit FoldSplit(int64_t n, int folds, int fold, uint64_t seed) {
  PHIMAP_CHECK(folds >= 2 && folds <= n && fold >= 0 && fold < folds);
  return SplitAt(n, n * fold / folds, n * (fold + 1) / folds, seed);
}

void ReorderRows(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                 MatrixView<double> rows) {
  const auto n = static_cast<int64_t>(from.size());
  PHIMAP_CHECK(to.size() == from.size() && rows.rows() == n);
  // place[r] is the present position of row number r.
  std::vector<int64_t> place(from.size());
  for (int64_t i = 0; i < n; ++i) place[from[i]] = i;
  std::vector<int64_t> source(from.size());
  for (int64_t i = 0; i < n; ++i) source[i] = place[to[i]];
  std::vector<double> spare(static_cast<size_t>(rows.cols()));
  for (int64_t start = 0; start < n; ++start) {
    if (source[start] == start) continue;
    std::copy_n(rows.row(start), rows.cols(), spare.data());
    int64_t hole = start;  // moves along the cycle and leaves finished rows behind
    while (source[hole] != start) {
      const int64_t next = source[hole];
      std::copy_n(rows.row(next), rows.cols(), rows.row(hole));
      source[hole] = hole;
      hole = next;
    }
    std::copy_n(spare.data(), rows.cols(), rows.row(hole));
    source[hole] = hole;
  }
}

}  // namespace phimap
