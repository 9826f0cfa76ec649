// The packed-panel product y = z·W for a W that never changes: packed once, multiplied often.
//
// Columns of W are cut into panels of two vectors of this machine; a panel stores the rows that can
// be non-zero, one after the other, so that a product reads memory in order. The kernel keeps a
// block of rows × two vectors of sums in registers.
//
// Arithmetic 1, which fixes every bit: y_j is, for blocks of 512 in k from the first, a chain of
// fused multiply-adds in the order of k starting from +0, and the block sums added in order to +0.
// Zeros that a panel stores beside a triangle do not change a chain of finite z, and the final
// addition to +0 makes the sign of a zero unique. So y depends on z and W alone: not on the number
// of rows, on how columns are spread over workers, or on the width of the vectors. Targets without
// fused multiply-add (SSE2 … SSE4) round twice and form a class of their own.
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

// At most kMaxSparseRows rows of which only some numbers are given, for products: entries
// offsets[i] … offsets[i+1]−1 belong to row i, with rising columns. All other numbers are 0.
template <typename T>
struct SparseRowsRef {
  int64_t rows = 0;
  const int64_t* offsets = nullptr;
  const int32_t* columns = nullptr;
  const T* values = nullptr;
};

// Results of a product on their way to memory: of rows first_row … first_row + rows − 1 and columns
// first_column … first_column + columns − 1.
template <typename T>
struct ProductBlock {
  // rows × stride numbers, aligned to the machine's vectors, which may be changed. Numbers after
  // `columns`, up to a whole number of vectors, are undefined.
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

// A packed k×n matrix. Immutable after packing; thread-safe. Packed for the vector unit of this
// process: never stored.
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
  // Multiplications of one row, counting the stored elements of the panels.
  int64_t multiplications() const { return elements_.size(); }

  // y_i = z_i · W for `rows` rows and the panels first_panel … last_panel − 1.
  //
  // Shapes: z row-major rows×depth() with stride `z_stride`; y[i] points at row i of the output,
  //         columns() numbers; only those of the named panels are written. Nothing aliases. NaN
  //         in z_i means NaN in y_i only.
  // Cost:   2 · rows · multiplications() flops; allocates nothing.
  void Multiply(const T* z, int64_t z_stride, int64_t rows, int64_t first_panel, int64_t last_panel,
                T* const* y) const;
  void Multiply(const T* z, int64_t z_stride, int64_t rows, T* const* y) const {
    Multiply(z, z_stride, rows, 0, panels(), y);
  }
  // Like Multiply, and sets finite[i] to false for each row i that has a result which is not
  // finite: they are checked while they are in registers.
  void MultiplyAndCheck(const T* z, int64_t z_stride, int64_t rows, T* const* y,
                        bool* finite) const;
  // Like Multiply, but passes every result once to `finish`, which writes its own value to y; the
  // memory of y is prefetched. The results equal those of Multiply.
  void MultiplyAndFinish(const T* z, int64_t z_stride, int64_t rows, T* const* y,
                         ProductFinish<T> finish) const;
  // Multiplies sparse rows, with the bits of Multiply on their dense form: a chain has only the
  // steps of entries that are present, and only the blocks that have an entry.
  //
  // Why that changes no bit: W is finite, so a step with z_k = ±0 adds ±0 to its sum s. That leaves
  // s as it is unless s is itself a zero, whose sign may change. A later step with a non-zero
  // product gives the same sum from either zero, because only the product is rounded. Block sums
  // therefore agree up to the sign of a zero. They are added in order to +0, and in rounding to
  // nearest +0 + ±0 = +0 and t + ±0 = t: so the total is never −0 and never depends on that sign.
  // For the same reason a block without entries, whose sum is a zero, may be skipped.
  //
  // REQUIRES: W is not a triangle and is finite; columns rise within a row, 0 <= column < depth().
  // Cost: 2 · entries · columns() flops, and reading the rows of W that the entries name.
  void MultiplySparse(const SparseRowsRef<T>& z, T* const* y) const;
  // Computes y_ij = ‖z_i − w_j‖₁ for the columns w_j of W, which is not a triangle. Like Multiply,
  // but each step of a chain adds |z_k − w_kj|, and every operation is rounded. Cost: 3 · rows ·
  // multiplications() operations.
  void L1Distances(const T* z, int64_t z_stride, int64_t rows, T* const* y) const;

 private:
  enum class Step { kProduct, kL1Distance };
  // Rows of z.
  struct Rows {
    const T* first = nullptr;
    int64_t stride = 0;
    int64_t count = 0;
  };
  // rows[i] + first_column belongs to row i of z and the first of some panels.
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
  // Runs panels into a block in the first-level cache, which `finish` gets, with rows counted from
  // z's. REQUIRES: they fit.
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

// ‖x_i‖² of each row by the same chains as the product, so that ‖x‖² + ‖x‖² − 2 x·x is exactly 0.
// Shapes: x rows×cols with stride `stride`; out `rows` numbers.
void ChainSquaredNorms(const float* x, int64_t stride, int64_t rows, int64_t cols, float* out);
void ChainSquaredNorms(const double* x, int64_t stride, int64_t rows, int64_t cols, double* out);

// Computes norms of sparse rows, with the bits of their dense form: a square of 0 leaves a sum,
// which is never −0, as it is.
void ChainSquaredNorms(const SparseRowsRef<float>& x, float* out);
void ChainSquaredNorms(const SparseRowsRef<double>& x, double* out);

// Whether all of `count` numbers are finite.
bool AllFinite(const float* values, int64_t count);
bool AllFinite(const double* values, int64_t count);

// Whether the vector unit in use has fused multiply-add. All units that have it give the same bits.
bool VectorTargetFuses();
// Name of the vector unit in use, for instance "AVX3", "AVX2" or "SSE4".
const char* VectorTargetName();

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PANEL_PRODUCT_H_
