// A symmetric matrix most of whose entries off the diagonal are zero, in float32.
#ifndef PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_
#define PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Filled row by row, where different threads may fill different blocks of rows; then mirrored; then
// multiplied with, thread-safe from then on. Takes 12 bytes an entry below the diagonal and its
// mirror image: columns are 16 bits.
class SparseSymmetric {
 public:
  static constexpr int64_t kMaxRows = 65536;
  // Row i is in block i / kBlockRows.
  static constexpr int64_t kBlockRows = 64;

  // An empty matrix of capacity `rows`, 1 to kMaxRows.
  explicit SparseSymmetric(int64_t rows);

  // Row i: its diagonal entry and the entries left of it that are not zero, by rising column.
  // REQUIRES: the rows of its block before it were added, none after it; columns are below i.
  void AddRow(int64_t i, float diagonal, const std::vector<uint16_t>& columns,
              const std::vector<float>& values);

  // Copies the entries below the diagonal to the mirrored positions above it. Errors: those of
  // `control`. REQUIRES: all rows were added.
  absl::Status Mirror(const TileControl& control);

  int64_t rows() const { return rows_; }
  float diagonal(int64_t i) const { return diagonal_[i]; }
  // Stored entries, diagonal included; each below it counts for two.
  int64_t stored() const;

  // out = v·A. Shapes: v and out b×rows(); out aliases not v. Products are of float32 numbers,
  // added in float32, the diagonal's first and then by rising column: within about 2⁻²⁴·√(entries
  // of a row) of the largest partial sum. Bits are equal on every target with fused multiply-add,
  // and for any number of threads. Cost: 4b flops an entry below the diagonal; 128 bytes a row
  // beside. Errors: those of `control`. REQUIRES: Mirror was called.
  absl::Status Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                        const TileControl& control) const;

  // Calls f(i, j, value) for each stored entry of rows begin … end − 1, row after row, j <= i.
  template <class F>
  void ForEachStored(int64_t begin, int64_t end, const F& f) const {
    for (int64_t i = begin; i < end; ++i) {
      const Entries& below = blocks_[i / kBlockRows].below;
      const int64_t r = i % kBlockRows;
      for (int64_t k = below.offsets[r]; k < below.offsets[r + 1]; ++k) {
        f(i, int64_t{below.columns[k]}, below.values[k]);
      }
      f(i, i, diagonal_[i]);
    }
  }

 private:
  // The entries of rows on one side of the diagonal.
  struct Entries {
    // Offsets of each row in the two arrays that follow; one more than rows were added.
    std::vector<int64_t> offsets = {0};
    std::vector<uint16_t> columns;
    std::vector<float> values;
  };
  struct Block {
    Entries below;
    Entries above;
  };
  int64_t FirstRow(int64_t block) const { return std::min(block * kBlockRows, rows_); }
  void MirrorBlocks(int64_t begin, int64_t end);
  // Calls f(i, j, value) for each entry below the diagonal in columns begin … end − 1, row after
  // row.
  template <class F>
  void ForEachBelow(int64_t begin, int64_t end, const F& f) const;
  // sums = the rows of a block, times `width` adjacent vectors.
  void MultiplyBlock(int64_t block, int64_t width, const float* v, float* sums) const;

  int64_t rows_;
  std::vector<float> diagonal_;
  std::vector<Block> blocks_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_
