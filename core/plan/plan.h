// A plan: the small program to which every mapping of every paper compiles.
//
//     x' = Pᵀ · ((x − c) ∘ s)                    input stage
//     z  = e( x' · A'ᵀ , ‖x'‖² , ‖a'_j‖² )       feature stage
//     y  = (z − μ) · W                           projection stage
//
// Builders emit plans, the store holds plans, and one engine executes all of them. Every stage
// except the feature stage is optional. The shapes of a plan are consistent (Validate).
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

// Version of the arithmetic: the order of every sum and the version of every function that computes
// features. Bits change only with it.
inline constexpr uint32_t kArithmetic = 1;

// Maximum number of columns, rows and features of any stage.
inline constexpr int64_t kMaxPlanDimension = 65536;
// Maximum degree of a monomial.
inline constexpr int64_t kMaxExpansionDegree = 64;

// x' = Pᵀ·((x − c) ∘ s), computed in float64 for either input type and rounded once to the serving
// type.
struct InputStage {
  int64_t columns = 0;
  // c and s: `columns` numbers, or empty for 0 and 1.
  std::vector<double> shift;
  std::vector<double> scale;
  // P, columns × projected columns; empty if there is no projection. The 1/√s of a ±1 projection is
  // part of `scale`.
  Matrix<double> projection;

  int64_t output_columns() const { return projection.empty() ? columns : projection.cols(); }
};

// Products with fixed rows, then an elementwise map: nearly every mapping. The program may also ask
// for L1 distances to the rows, products with bilinear forms of them and factors of rows.
template <typename T>
struct ProductFeatures {
  // A', rows × input-stage columns. Each row gives as many features as the program has results.
  Matrix<T> rows;
  KernelProgram program;
  // b_j, one for each row, if the program reads offsets; empty otherwise.
  std::vector<T> offsets;
};

// L1 distances alone: the value that the program starts from is ‖x' − a'_j‖₁. Builders emit
// ProductFeatures with a program that computes distances; this older form is still decoded and
// executed.
template <typename T>
struct L1Features {
  Matrix<T> rows;
  KernelProgram program;
};

// Monomials: feature j is coefficients[j] times `degree` columns, one after the other in `columns`.
template <typename T>
struct ExpansionFeatures {
  int64_t degree = 0;
  // `degree` for each feature, rising; −1 is a column of ones.
  std::vector<int32_t> columns;
  std::vector<T> coefficients;
};

// Maximum bytes of the strings of a plan, counted once for each unit and n of its kernels. An
// engine uses up to StringIndex::kBytesPerUnit times as much memory.
inline constexpr int64_t kMaxIndexedBytes = int64_t{8} << 20;

// Kernels between strings and the plan's fixed strings, then an elementwise map. There is no input
// stage: the plan has 0 columns.
struct StringFeatures {
  std::vector<std::string> strings;
  KernelProgram program;
};

// Features that are values of a remote kernel: z arrives from a kernel service or from the caller,
// K(x, example_j) for each example. The engine takes it for its rows and runs the projection stage
// on it.
struct RemoteFeatures {
  // Kind of the stored examples. With kRowNumbers no service is asked: the values come with the
  // request.
  enum class ExampleKind : uint8_t {
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
  ExampleKind kind = ExampleKind::kDense;
  // The landmarks themselves, in the form of ExampleBlock::Bytes. For row numbers: the position of
  // each in the stream, from 0, in decimal.
  std::vector<std::string> examples;

  bool of_strings() const { return kind == ExampleKind::kBytes || kind == ExampleKind::kText; }
};

// REQUIRES: `kind` is not kRowNumbers.
ExampleKind KindOf(RemoteFeatures::ExampleKind kind);
RemoteFeatures::ExampleKind StoredKindOf(ExampleKind kind);

// No W.
struct NoProjection {};

// W upper triangular r×r: element (k, j), k ≤ j, at elements[k·r − k(k−1)/2 + (j − k)], row after
// row.
template <typename T>
struct TriangularProjection {
  int64_t order = 0;
  AlignedArray<T> elements;
  // For F2: K(a_k, a_k) > 0 of the landmark of row k. Empty in old plans. Features do not depend on
  // it, but the bound on their rounding does (residual.h).
  std::vector<double> self_values;

  static int64_t ElementCount(int64_t order) { return order * (order + 1) / 2; }
  int64_t RowOffset(int64_t k) const { return k * order - k * (k - 1) / 2; }
};

// W dense, features × outputs.
template <typename T>
struct DenseProjection {
  Matrix<T> matrix;
};

// W in compressed sparse row form: row k's values are at row_offsets[k] .. row_offsets[k+1]−1,
// columns rising.
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
  // μ: one number for each feature, or empty for 0.
  std::vector<T> centre;
  std::variant<NoProjection, TriangularProjection<T>, DenseProjection<T>, SparseProjection<T>>
      projection;

  int64_t feature_count() const;
  int64_t output_columns() const;
};

struct Plan {
  uint32_t arithmetic = kArithmetic;
  InputStage input;
  // The alternative tells the serving type.
  std::variant<ServingStages<float>, ServingStages<double>> stages;

  FloatType serving_type() const {
    return stages.index() == 0 ? FloatType::kFloat32 : FloatType::kFloat64;
  }
  // Columns of an example; 0 if the plan maps strings. For a remote block the engine's rows differ:
  // they have one value for each landmark.
  int64_t input_columns() const { return input.columns; }
  int64_t output_columns() const;

  // OK if shapes agree, dimensions are within 1..kMaxPlanDimension, every number is finite, and
  // sparse indices are in range and rising. Otherwise INVALID_ARGUMENT with the stage and the
  // fault.
  absl::Status Validate() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_PLAN_H_
