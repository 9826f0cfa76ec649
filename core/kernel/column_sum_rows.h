// Computes Σ_k w_k·g(x_k, a_k) of one row x with each of many fixed rows a (column_sum.h), with
// vector instructions.
#ifndef PHIMAP_CORE_KERNEL_COLUMN_SUM_ROWS_H_
#define PHIMAP_CORE_KERNEL_COLUMN_SUM_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/kernel/column_sum.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Computes column sums with fixed rows a_j, which are packed in panels of 32 rows. Holds only the
// columns that the sum reads. Immutable; thread-safe.
//
// Accuracy: a sum is cut into blocks of 512 columns, from the first column on. Each block is summed
//           by one chain of fused multiply-adds of weights and terms. The sums of the blocks are
//           then added in order.
// Bits:     those of a sum depend only on its two rows, and are equal on every target with fused
//           multiply-add.
template <typename T>
class ColumnSumRows {
 public:
  // REQUIRES: `rows` have the columns that `sum` reads, and the weights of `sum` fit into T.
  ColumnSumRows(const ColumnSum& sum, ConstMatrixView<T> rows);

  int64_t rows() const { return rows_; }
  int64_t taken() const { return static_cast<int64_t>(weights_.size()); }
  // Computes out[i][j] = K(x_i, a_j) for `count` whole rows x_i, which begin at x + i·stride, and
  // each fixed row a_j. The rows of `out` must not alias anything. Cost: 2 to 5 operations per
  // number. Terms that divide also take one division per number.
  void Sums(const T* x, int64_t stride, int64_t count, T* const* out) const;
  int64_t memory_bytes() const {
    return static_cast<int64_t>(panels_.size() + weights_.size()) * static_cast<int64_t>(sizeof(T));
  }

 private:
  ColumnTerm term_;
  int64_t first_ = 0;
  int64_t rows_ = 0;
  std::vector<T> weights_;
  AlignedArray<T> panels_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_COLUMN_SUM_ROWS_H_
