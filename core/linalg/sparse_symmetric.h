// A symmetric matrix most of whose entries off the diagonal are zero, in float32.
#ifndef PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_
#define PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_

#include <cstdint>
#include <vector>

#include "core/linalg/matrix.h"

namespace phimap {

// Filled row by row, then multiplied with; thread-safe once it is filled. 6 bytes an entry below
// the diagonal: columns are 16 bits.
class SparseSymmetric {
 public:
  static constexpr int64_t kMaxRows = 65536;

  // Of `rows` rows, 1 to kMaxRows; as yet none is there.
  explicit SparseSymmetric(int64_t rows);

  // The next row: its diagonal entry and the entries left of it that are not zero, by rising
  // column. REQUIRES: fewer than rows() were added; columns are below the row's own number.
  void AddRow(float diagonal, const std::vector<uint16_t>& columns,
              const std::vector<float>& values);

  int64_t rows() const { return rows_; }
  // Entries that are stored, diagonal included; each below it stands for two.
  int64_t stored() const {
    return static_cast<int64_t>(values_.size()) + static_cast<int64_t>(diagonal_.size());
  }

  // out = v·A. Shapes: v and out b×rows(); out aliases not v. Products are of float32 numbers,
  // added in float32 in the order of the rows: within about 2⁻²⁴·√(entries of a row) of the largest
  // partial sum. Bits are equal on every target with fused multiply-add. Cost: 4b flops an entry;
  // 256 bytes a row beside. REQUIRES: all rows were added.
  void Multiply(ConstMatrixView<double> v, MatrixView<double> out) const;

  // Calls f(i, j, value) for each stored entry, row after row, j <= i.
  template <class F>
  void ForEachStored(const F& f) const {
    for (int64_t i = 0; i < static_cast<int64_t>(diagonal_.size()); ++i) {
      for (int64_t k = offsets_[i]; k < offsets_[i + 1]; ++k)
        f(i, int64_t{columns_[k]}, values_[k]);
      f(i, i, diagonal_[i]);
    }
  }

 private:
  int64_t rows_;
  std::vector<float> diagonal_;
  // Of each row's entries below the diagonal in the two that follow; rows + 1 numbers.
  std::vector<int64_t> offsets_;
  std::vector<uint16_t> columns_;
  std::vector<float> values_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_
