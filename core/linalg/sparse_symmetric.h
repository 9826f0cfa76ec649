// A sparse symmetric matrix in float32: most entries off the diagonal are zero.
#ifndef PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_
#define PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// The matrix is first filled row by row. Different threads may fill different blocks of rows. Then
// it is mirrored. After that, it is thread-safe and can be multiplied with. An entry below the
// diagonal and its mirror image together take 12 bytes, because columns have 16 bits.
class SparseSymmetric {
 public:
  static constexpr int64_t kMaxRows = 65536;
  // Row i is in block i / kBlockRows.
  static constexpr int64_t kBlockRows = 64;

  // Makes an empty matrix with room for `rows` rows, 1 to kMaxRows.
  explicit SparseSymmetric(int64_t rows);

  // Adds row i: its diagonal entry, and the entries left of the diagonal that are not zero, by
  // rising column. REQUIRES: the earlier rows of its block were added, and no later ones; columns
  // are below i.
  void AddRow(int64_t i, float diagonal, const std::vector<uint16_t>& columns,
              const std::vector<float>& values);

  // Copies the entries below the diagonal to the mirrored positions above it. Errors: those of
  // `control`. REQUIRES: all rows were added.
  absl::Status Mirror(const TileControl& control);

  int64_t rows() const { return rows_; }
  float diagonal(int64_t i) const { return diagonal_[i]; }
  // Returns the number of stored entries: the diagonal, and the entries below it, each of which
  // stands for two entries of the matrix.
  int64_t stored() const;

  // Computes out = v·A for this matrix A and b row vectors v.
  //
  // Shapes: v and out b×rows(). out must not alias v.
  // Accuracy: numbers are multiplied and added in float32, first the product with the diagonal,
  //           then the others by rising column. The error is at most about 2⁻²⁴·√(entries of a row)
  //           times the largest partial sum.
  // Bits: the same on every target with fused multiply-add, and for any number of threads.
  // Cost: 4b flops for each entry below the diagonal, and 128 bytes of memory for each row.
  // Errors: those of `control`.
  // REQUIRES: Mirror was called.
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
    // The offset of each row in the two arrays below, and the offset after the last row.
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
  // Computes sums = the rows of a block times `width` adjacent vectors.
  void MultiplyBlock(int64_t block, int64_t width, const float* v, float* sums) const;

  int64_t rows_;
  std::vector<float> diagonal_;
  std::vector<Block> blocks_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_SPARSE_SYMMETRIC_H_
