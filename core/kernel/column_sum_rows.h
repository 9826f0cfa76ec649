// Computes column sums of a row with many fixed rows, with vector instructions.
#ifndef PHIMAP_CORE_KERNEL_COLUMN_SUM_ROWS_H_
#define PHIMAP_CORE_KERNEL_COLUMN_SUM_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/kernel/column_sum.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Fixed rows a_j, packed in panels of 32 rows. Holds only the columns that the sum reads.
// Immutable; thread-safe.
//
// Accuracy: each sum is one chain of fused multiply-adds of weights and terms per 512 columns, from
//           the first column on; the chains are then added in order.
// Bits:     a sum depends only on its own two rows; equal on every target with fused multiply-add.
template <typename T>
class ColumnSumRows {
 public:
  // REQUIRES: `rows` have the columns that the sum reads, and its weights fit into T.
  ColumnSumRows(const ColumnSum& sum, ConstMatrixView<T> rows);

  int64_t rows() const { return rows_; }
  int64_t taken() const { return static_cast<int64_t>(weights_.size()); }
  // Computes out[j] = K(x, a_j). `x` is a whole row; `out` must not alias anything. Cost: 2 to 5
  // operations per number and, for the terms that divide, a division.
  void Sums(const T* x, T* out) const;
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
