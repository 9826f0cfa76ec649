// The product y = z·W for a matrix W that is packed once and multiplied often.
//
// Layout. The columns of W are cut into panels, each two vectors of this machine wide. A panel
// stores its rows one after the other, so that a product reads memory in order. Rows that are zero
// because W is a triangle are left out. During a product, registers hold the sums of a block of
// some rows by two vectors.
//
// Bits. Arithmetic 1 fixes every bit of y. The element y_j is a sum over k of z_k·w_kj. The sum is
// cut into blocks of 512 terms, from the first k on. The sum of a block is a chain of fused
// multiply-adds in the order of k, starting from +0. The sums of the blocks are added to +0 in
// order. So y depends only on z and W. It does not depend on the number of rows, on how columns are
// spread over workers, or on the width of the vectors.
//
// Zeros. A panel of a triangle also stores some zeros beside the triangle. They do not change the
// chain of a finite z, except perhaps the sign of a zero. The final addition to +0 makes the sign
// of a zero unique.
//
// Targets without fused multiply-add (SSE2 … SSE4) round twice per step, so their bits differ from
// those of other targets.
#ifndef PHIMAP_CORE_LINALG_PANEL_PRODUCT_H_
#define PHIMAP_CORE_LINALG_PANEL_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Length of the chains, a part of arithmetic 1.
inline constexpr int64_t kChainBlock = 512;

// Maximum number of rows of a SparseRowsRef.
inline constexpr int64_t kMaxSparseRows = 64;

// At most kMaxSparseRows rows in compressed sparse row form, for products: entries offsets[i] …
// offsets[i+1]−1 belong to row i, with rising columns. All other numbers are 0.
template <typename T>
struct SparseRowsRef {
  int64_t rows = 0;
  const int64_t* offsets = nullptr;
  const int32_t* columns = nullptr;
  const T* values = nullptr;
};

// A block of a product's results before they are written to memory: rows first_row … first_row +
// rows − 1 and columns first_column … first_column + columns − 1.
template <typename T>
struct ProductBlock {
  // The numbers of the block. It has `rows` rows, which begin `stride` numbers apart. The first
  // number is aligned to the machine's vectors. Each row begins with `columns` results. Padding of
  // undefined value follows, up to the end of the last vector. The receiver may overwrite results
  // and padding.
  T* values = nullptr;
  int64_t stride = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_column = 0;
  int64_t columns = 0;
};

// Receives a block that was just computed and is still in the first-level cache.
template <typename T>
using ProductFinish = absl::FunctionRef<void(const ProductBlock<T>& block)>;

// A packed k×n matrix. Immutable after packing; thread-safe. The layout depends on the vector unit
// of this process, so it is never stored.
template <typename T>
class PanelMatrix {
 public:
  PanelMatrix() = default;
  // Packs W, k×n row-major.
  static PanelMatrix Pack(ConstMatrixView<T> w);
  // Packs W = aᵀ for a of n rows and k columns, without transposing it first.
  static PanelMatrix PackTransposed(ConstMatrixView<T> a);
  // Packs an upper triangular W of order n whose non-zero part is given row after row
  // (TriangularProjection).
  static PanelMatrix PackUpperTriangle(const T* elements, int64_t n);

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  int64_t panels() const { return static_cast<int64_t>(offsets_.size()); }
  int64_t panel_columns() const { return panel_columns_; }
  // Number of columns including the padding of the last panel.
  int64_t padded_columns() const { return panels() * panel_columns_; }
  int64_t memory_bytes() const { return elements_.size() * static_cast<int64_t>(sizeof(T)); }
  // Number of multiplications for one row of z, including those by stored zeros.
  int64_t multiplications() const { return elements_.size(); }

  // Computes y_i = z_i · W for `rows` rows and the panels first_panel … last_panel − 1.
  //
  // Shapes: z is row-major, rows×depth(), with stride `z_stride`. y[i] points to row i of the
  //         output, which has columns() numbers. Only the numbers of these panels are written.
  //         Nothing may alias. A NaN in z_i makes only y_i NaN.
  // Cost:   2 · rows · multiplications() flops; allocates nothing.
  void Multiply(const T* z, int64_t z_stride, int64_t rows, int64_t first_panel, int64_t last_panel,
                T* const* y) const;
  void Multiply(const T* z, int64_t z_stride, int64_t rows, T* const* y) const {
    Multiply(z, z_stride, rows, 0, panels(), y);
  }
  // Like Multiply, but also sets finite[i] to false for each row i that has a result which is not
  // finite. Results are checked while they are in registers.
  void MultiplyAndCheck(const T* z, int64_t z_stride, int64_t rows, T* const* y,
                        bool* finite) const;
  // Like Multiply, but passes every result once to `finish`, which writes the final values to y.
  // The memory of y is prefetched. The results equal those of Multiply.
  void MultiplyAndFinish(const T* z, int64_t z_stride, int64_t rows, T* const* y,
                         ProductFinish<T> finish) const;
  // Multiplies sparse rows. The results have the same bits as those of Multiply on the dense form
  // of the rows. A chain has steps only for the entries that are present. Blocks without entries
  // are skipped.
  //
  // Why the bits are the same. A skipped step would have added ±0 to the sum s of its block,
  // because z_k is ±0 and W is finite. This leaves s unchanged unless s is itself a zero. In that
  // case only the sign of s may change. Any later step with a non-zero product gives the same sum
  // from +0 and from −0. The sum of a block is therefore the same, except perhaps for the sign of a
  // zero. The sums of blocks are then added to +0 in order. In rounding to nearest, +0 + ±0 = +0,
  // and t + ±0 = t for any t that is not 0. So the total is never −0, and does not depend on the
  // sign of any zero. A block without entries, whose sum is a zero, changes nothing either.
  //
  // REQUIRES: W is not a triangle and is finite. Columns rise within a row; 0 <= column < depth().
  // Cost: 2 · entries · columns() flops, plus reading the rows of W that the entries select.
  void MultiplySparse(const SparseRowsRef<T>& z, T* const* y) const;
  // Computes the L1 distances y_ij = ‖z_i − w_j‖₁ from each row z_i to each column w_j of W. Works
  // like Multiply, but each step of a chain adds |z_k − w_kj|, and every operation is rounded.
  // Cost: 3 · rows · multiplications() operations. REQUIRES: W is not a triangle.
  void L1Distances(const T* z, int64_t z_stride, int64_t rows, T* const* y) const;

 private:
  enum class Step { kProduct, kL1Distance };
  // Rows of z: row i begins at first + i · stride.
  struct Rows {
    const T* first = nullptr;
    int64_t stride = 0;
    int64_t count = 0;
  };
  // Destination of adjacent panels: row i of z and the first column of the first panel go to
  // rows[i] + first_column.
  struct Place {
    T* const* rows = nullptr;
    int64_t first_column = 0;
  };
  // Computes panels first_panel … last_panel − 1 into y, and marks rows with values that are not
  // finite in `finite`, if it is not null.
  void Run(Step step, const Rows& z, int64_t first_panel, int64_t last_panel, T* const* y,
           bool* finite) const;
  // Runs panels whose columns all have a place in `to`. The memory of `results` is prefetched,
  // because the final values go there.
  void RunWhole(Step step, const Rows& z, int64_t first_panel, int64_t last_panel, const Place& to,
                const Place& results, bool* finite) const;
  // Runs panels into a block in the first-level cache, and passes the block to `finish`. The rows
  // of the block are counted from the first row of `z`. REQUIRES: the results fit into the block.
  void RunStaged(Step step, const Rows& z, int64_t first_panel, int64_t last_panel, T* const* y,
                 ProductFinish<T> finish) const;

  // Lays out panels of `height(panel)` rows and fills them from `element(k, j)`, 0 outside of the
  // matrix.
  template <typename Height, typename Element>
  static PanelMatrix PackFrom(int64_t depth, int64_t columns, Height height, Element element);

  // Number of rows in which the left vector of a panel is not zero.
  int64_t LeftHeight(int64_t panel) const;

  bool triangular_ = false;
  int64_t depth_ = 0;
  int64_t columns_ = 0;
  int64_t panel_columns_ = 0;
  // Panel p holds heights_[p] × panel_columns_ numbers from elements_ + offsets_[p].
  std::vector<int64_t> offsets_;
  std::vector<int64_t> heights_;
  AlignedArray<T> elements_;
};

// Computes ‖x_i‖² of each row by the same chains as the product. The squared distance ‖x‖² + ‖x‖² −
// 2 x·x of a row from itself is therefore exactly 0.
// Shapes: x rows×cols with stride `stride`; out `rows` numbers.
void ChainSquaredNorms(const float* x, int64_t stride, int64_t rows, int64_t cols, float* out);
void ChainSquaredNorms(const double* x, int64_t stride, int64_t rows, int64_t cols, double* out);

// Computes ‖x_i‖² of sparse rows, with the same bits as for their dense form. The missing entries
// would add squares of 0, which leave a sum unchanged, because a sum is never −0.
void ChainSquaredNorms(const SparseRowsRef<float>& x, float* out);
void ChainSquaredNorms(const SparseRowsRef<double>& x, double* out);

// Whether all of `count` numbers are finite.
bool AllFinite(const float* values, int64_t count);
bool AllFinite(const double* values, int64_t count);

// Whether the vector unit in use has fused multiply-add. All units that have it give the same bits.
bool VectorTargetFuses();
// Returns the name of the vector unit in use, for instance "AVX3", "AVX2" or "SSE4".
const char* VectorTargetName();

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PANEL_PRODUCT_H_
