// A plan is a small program that computes the features of a row x. Every mapping of every paper
// compiles to a plan. A plan has up to three stages:
//
//     x' = Pᵀ · ((x − c) ∘ s)                    input stage
//     z  = e( x' · A'ᵀ , ‖x'‖² , ‖a'_j‖² )       feature stage
//     y  = (z − μ) · W                           projection stage
//
// The input stage shifts x by c, scales it by s and projects it by P. The feature stage applies an
// elementwise map e to the products of x' with the rows a'_j of A', and to squared norms. The
// projection stage shifts z by μ and multiplies it by W. Only the feature stage is mandatory.
//
// Builders make plans, the store holds plans, and one engine executes all of them. Validate checks
// that the shapes of a plan are consistent.
#ifndef PHIMAP_CORE_PLAN_PLAN_H_
#define PHIMAP_CORE_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/rows.h"

namespace phimap {

// The arithmetic is the order of every sum, and the way in which every function that computes
// features is evaluated. This is its version number. While the number stays the same, the same plan
// gives bit-for-bit the same features for the same row, on every machine with fused multiply-add.
inline constexpr uint32_t kArithmetic = 1;

// Maximum number of columns, rows and features of any stage.
inline constexpr int64_t kMaxPlanDimension = 65536;
// Maximum degree of a monomial.
inline constexpr int64_t kMaxExpansionDegree = 64;

// The input stage, x' = Pᵀ·((x − c) ∘ s). It is computed in float64 for inputs of either type. The
// result is rounded once to the serving type.
struct InputStage {
  int64_t columns = 0;
  // c (`shift`) and s (`scale`), each of `columns` numbers. An empty c stands for zeros, an empty s
  // for ones.
  std::vector<double> shift;
  std::vector<double> scale;
  // The matrix P, columns × projected columns. Empty if there is no projection. A projection with
  // ±1 entries has the factor 1/√(projected columns), which is part of `scale`.
  Matrix<double> projection;

  int64_t output_columns() const { return projection.empty() ? columns : projection.cols(); }
};

// The features of nearly every mapping. The engine multiplies x' with fixed rows and then applies a
// kernel program to each product. The program may also read L1 distances to the rows, products with
// bilinear forms, and factors of rows.
template <typename T>
struct ProductFeatures {
  // A', rows × input-stage columns. Each row gives as many features as the program has results.
  Matrix<T> rows;
  KernelProgram program;
  // b_j, one for each row, if the program reads offsets; empty otherwise.
  std::vector<T> offsets;
};

// Features that are computed from L1 distances alone. The program starts from the distances ‖x' −
// a'_j‖₁ instead of products. This is an older form, which is still decoded and executed. Builders
// emit ProductFeatures with a program that computes distances.
template <typename T>
struct L1Features {
  Matrix<T> rows;
  KernelProgram program;
};

// Features that are monomials: feature j is coefficients[j] times the product of `degree` columns.
// `columns` lists the columns of feature 0, then those of feature 1, and so on.
template <typename T>
struct ExpansionFeatures {
  int64_t degree = 0;
  // `degree` columns for each feature, in rising order; −1 stands for a column of ones.
  std::vector<int32_t> columns;
  std::vector<T> coefficients;
};

// Maximum bytes of the strings of a plan, counted once for each unit and n of its kernels. An
// engine uses up to StringIndex::kBytesPerUnit times as much memory.
inline constexpr int64_t kMaxIndexedBytes = int64_t{8} << 20;

// Features that are string kernels with the plan's fixed strings, then an elementwise map. There is
// no input stage: the plan has 0 columns.
struct StringFeatures {
  std::vector<std::string> strings;
  KernelProgram program;
};

// Features that are values of a remote kernel. z holds K(x, a) for each stored example a. The
// values come from a kernel service or from the caller. The engine takes z as its input row, and
// runs only the projection stage on it.
struct RemoteFeatures {
  // Kind of the stored examples. With kRowNumbers, no service is called, because the values come
  // with the request.
  enum class StoredKind : uint8_t {
    kDense = 1,
    kBytes = 2,
    kText = 3,
    kRowNumbers = 4,
    kSparse = 5
  };
  // Name of the kernel, as the service knows it, and of its endpoint on the operator's allow-list.
  // Both are empty for row numbers.
  std::string kernel;
  std::string endpoint;
  StoredKind kind = StoredKind::kDense;
  // The landmarks themselves, in the form of ExampleBlock::Bytes. For row numbers: the position of
  // each landmark in the stream, counted from 0, in decimal.
  std::vector<std::string> examples;

  bool of_strings() const { return kind == StoredKind::kBytes || kind == StoredKind::kText; }
};

// REQUIRES: `kind` is not kRowNumbers.
ExampleKind KindOf(RemoteFeatures::StoredKind kind);
RemoteFeatures::StoredKind StoredKindOf(ExampleKind kind);

// Stands for a plan without W.
struct NoProjection {};

// An upper triangular matrix W of order r. Its elements are stored row after row: element (k, j), k
// ≤ j, is elements[k·r − k(k−1)/2 + (j − k)].
template <typename T>
struct TriangularProjection {
  int64_t order = 0;
  AlignedArray<T> elements;
  // For F2. self_values[k] is K(a_k, a_k) > 0 of a_k, the landmark of row k. Empty in old plans.
  // The bound on the rounding of features depends on these values (residual.h). The features do
  // not.
  std::vector<double> self_values;

  static int64_t ElementCount(int64_t order) { return order * (order + 1) / 2; }
  int64_t RowOffset(int64_t k) const { return k * order - k * (k - 1) / 2; }
};

// W dense, features × outputs.
template <typename T>
struct DenseProjection {
  Matrix<T> matrix;
};

// The matrix W in compressed sparse row form. The values of row k are at row_offsets[k] ..
// row_offsets[k+1]−1, and their columns rise.
template <typename T>
struct SparseProjection {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> row_offsets;
  std::vector<int32_t> column_indices;
  std::vector<T> values;
};

// The stages that are held in the serving type.
template <typename T>
struct ServingStages {
  using Element = T;
  std::variant<ProductFeatures<T>, L1Features<T>, RemoteFeatures, ExpansionFeatures<T>,
               StringFeatures>
      features;
  // μ, one number for each feature. Empty if all are 0.
  std::vector<T> centre;
  std::variant<NoProjection, TriangularProjection<T>, DenseProjection<T>, SparseProjection<T>>
      projection;

  int64_t feature_count() const;
  int64_t output_columns() const;
};

struct Plan {
  uint32_t arithmetic = kArithmetic;
  InputStage input;
  // The alternative that is held determines the serving type.
  std::variant<ServingStages<float>, ServingStages<double>> stages;

  FloatType serving_type() const {
    return stages.index() == 0 ? FloatType::kFloat32 : FloatType::kFloat64;
  }
  // Returns the number of columns of an example; 0 if the plan maps strings. For a remote kernel
  // the engine's rows differ: they have one value for each landmark.
  int64_t input_columns() const { return input.columns; }
  int64_t output_columns() const;

  // Returns OK if shapes agree, dimensions are within 1..kMaxPlanDimension, every number is finite,
  // and sparse indices are in range and rising. Otherwise returns INVALID_ARGUMENT with the stage
  // and the fault.
  absl::Status Validate() const;
};

// Returns the rows after a plan's input stage, computed without an engine in float64, not rounded
// to the serving type. Calls BLAS only if the stage projects. REQUIRES: rows.cols() ==
// input.columns.
Matrix<double> AfterInputStage(const InputStage& input, ConstMatrixView<double> rows);

InputStage CopyOf(const InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_PLAN_H_
