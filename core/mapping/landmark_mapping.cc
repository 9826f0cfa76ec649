#include "core/mapping/landmark_mapping.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// The feature and projection stages in float64, before they are rounded to the serving type.
struct Stages {
  Matrix<double> rows;
  KernelProgram program;
  // At most one of these; both empty: no projection.
  Matrix<double> upper_triangle;  // r×r, what lies below the diagonal is ignored
  Matrix<double> dense;           // r×d3
};

// Each number rounded to T and back: the values that will be served.
template <typename T>
Matrix<double> Rounded(ConstMatrixView<double> from) {
  return Converted<double, T>(Converted<T, double>(from).view());
}

Matrix<double> RoundedRows(const LandmarkTask& task) {
  return task.serving_type == FloatType::kFloat32 ? Rounded<float>(task.landmarks)
                                                  : Rounded<double>(task.landmarks);
}

template <typename T>
TriangularProjection<T> PackTriangle(const Matrix<double>& upper) {
  TriangularProjection<T> triangle;
  triangle.order = upper.rows();
  triangle.elements = AlignedArray<T>(triangle.ElementCount(triangle.order));
  T* out = triangle.elements.data();
  for (int64_t k = 0; k < upper.rows(); ++k) {
    for (int64_t j = k; j < upper.cols(); ++j) *out++ = static_cast<T>(upper(k, j));
  }
  return triangle;
}

template <typename T>
ServingStages<T> StagesIn(const Stages& stages) {
  ServingStages<T> typed;
  typed.features = ProductFeatures<T>{Converted<T, double>(stages.rows.view()), stages.program};
  if (!stages.upper_triangle.empty()) {
    typed.projection = PackTriangle<T>(stages.upper_triangle);
  } else if (!stages.dense.empty()) {
    typed.projection = DenseProjection<T>{Converted<T, double>(stages.dense.view())};
  }
  return typed;
}

InputStage CopyOf(const InputStage& input) {
  return {.columns = input.columns,
          .shift = input.shift,
          .scale = input.scale,
          .projection = input.projection.Clone()};
}

absl::Status NotRepresentable(const LandmarkTask& task, absl::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_REPRESENTABLE", "spec.serving_type",
                   absl::StrCat("the mapping's numbers do not fit into ",
                                FloatTypeName(task.serving_type), " (", what,
                                "); standardize the inputs, rescale the kernel or serve in "
                                "float64"));
}

// Before any kernel value is computed: of a row that overflowed, K(x, x) could come out as 0.
absl::Status CheckRounded(const LandmarkTask& task, const Matrix<double>& rows) {
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(rows.data()[i])) continue;
    return NotRepresentable(task, absl::StrCat("column ", i % rows.cols(), " of landmark ",
                                               i / rows.cols(), " is ", rows.data()[i]));
  }
  return absl::OkStatus();
}

// Both plans of a mapping. A weight that float32 cannot hold shows as an invalid plan.
absl::Status Emit(const LandmarkTask& task, const Stages& stages, LandmarkMapping& mapping) {
  mapping.served.input = CopyOf(task.input);
  mapping.reference.input = CopyOf(task.input);
  mapping.reference.stages = StagesIn<double>(stages);
  if (task.serving_type == FloatType::kFloat32) {
    mapping.served.stages = StagesIn<float>(stages);
  } else {
    mapping.served.stages = StagesIn<double>(stages);
  }
  const absl::Status valid = mapping.served.Validate();
  return valid.ok() ? valid : NotRepresentable(task, valid.message());
}

// Gram matrix of the served rows, its factorization, and the pivots' rows.
absl::Status FactorLandmarks(const LandmarkTask& task, Checkpoint checkpoint,
                             LandmarkMapping& mapping) {
  const int64_t d = task.landmarks.rows();
  const Matrix<double> rows = RoundedRows(task);
  PHIMAP_RETURN_IF_ERROR(CheckRounded(task, rows));
  Matrix<double> gram = Matrix<double>::Uninit(d, d);
  PHIMAP_RETURN_IF_ERROR(KernelGram(KernelProgram::Compile(task.kernel), rows.view(), gram.view(),
                                    [&](double f) { return checkpoint(0.4 * f); }));
  double largest = 0;
  for (int64_t i = 0; i < d; ++i) {
    largest = std::max(largest, gram(i, i));
    mapping.trace += gram(i, i);
  }
  const double u = std::ldexp(1.0, task.serving_type == FloatType::kFloat32 ? -24 : -53);
  mapping.tolerance = static_cast<double>(d) * u * largest;
  PHIMAP_ASSIGN_OR_RETURN(mapping.cholesky,
                          FactorPivoted(gram.view(), mapping.tolerance,
                                        [&](double f) { return checkpoint(0.4 + 0.4 * f); }));
  const int64_t r = mapping.cholesky.rank();
  if (r == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "ZERO_KERNEL", "kernel",
                     "K(x, x) is 0 on every landmark, so that there is no direction to project on");
  }
  mapping.factor = Matrix<double>(r, r);
  mapping.pivots = Matrix<double>::Uninit(r, rows.cols());
  for (int64_t i = 0; i < r; ++i) {
    std::copy_n(gram.row(i), i + 1, mapping.factor.row(i));
    std::copy_n(rows.row(mapping.cholesky.pivots[i]), rows.cols(), mapping.pivots.row(i));
  }
  return checkpoint(0.8);
}

// With K(x, a) = c·x·a, k_r(x)·W = x·(c·A'ᵀ·W): one matrix, stored transposed as the rows of the
// feature stage.
Stages FoldLinear(double factor, const Matrix<double>& pivots, const Matrix<double>& w) {
  Matrix<double> wt = Matrix<double>::Uninit(w.cols(), w.rows());
  for (int64_t i = 0; i < w.rows(); ++i) {
    for (int64_t j = 0; j < w.cols(); ++j) wt(j, i) = w(i, j);
  }
  Stages stages;
  stages.rows = Matrix<double>::Uninit(w.cols(), pivots.cols());
  Multiply(factor, wt.view(), pivots.view(), 0, stages.rows.view());
  return stages;
}

// The stages of F(x) = k_r(x)·w, with w upper triangular or dense; a linear kernel folds.
Stages WeightedStages(const LandmarkTask& task, const LandmarkMapping& mapping, Matrix<double> w,
                      bool triangular) {
  double factor = 0;
  if (task.kernel.IsScaledLinear(&factor)) return FoldLinear(factor, mapping.pivots, w);
  Stages stages;
  stages.rows = mapping.pivots.Clone();
  stages.program = KernelProgram::Compile(task.kernel);
  (triangular ? stages.upper_triangle : stages.dense) = std::move(w);
  return stages;
}

}  // namespace

absl::StatusOr<LandmarkMapping> BuildF1(const LandmarkTask& task) {
  Stages stages;
  stages.rows = RoundedRows(task);
  stages.program = KernelProgram::Compile(task.kernel);
  LandmarkMapping mapping;
  PHIMAP_RETURN_IF_ERROR(Emit(task, stages, mapping));
  return mapping;
}

absl::StatusOr<LandmarkMapping> BuildF2(const LandmarkTask& task, Checkpoint checkpoint) {
  LandmarkMapping mapping;
  PHIMAP_RETURN_IF_ERROR(FactorLandmarks(task, checkpoint, mapping));
  const int64_t r = mapping.factor.rows();
  Matrix<double> inverse = mapping.factor.Clone();
  PHIMAP_RETURN_IF_ERROR(InvertLowerTriangle(inverse.view()));
  Matrix<double> w(r, r);
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j <= i; ++j) w(j, i) = inverse(i, j);
  }
  PHIMAP_RETURN_IF_ERROR(
      Emit(task, WeightedStages(task, mapping, std::move(w), /*triangular=*/true), mapping));
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  return mapping;
}

absl::StatusOr<LandmarkMapping> BuildF3(const LandmarkTask& task, int64_t dimensions, uint64_t seed,
                                        Checkpoint checkpoint) {
  PHIMAP_CHECK(dimensions >= 1);
  LandmarkMapping mapping;
  PHIMAP_RETURN_IF_ERROR(FactorLandmarks(task, checkpoint, mapping));
  const int64_t r = mapping.factor.rows();
  Matrix<double> w = Matrix<double>::Uninit(r, dimensions);
  const RandomStream normals(seed, StreamId::kProjection);
  const double root = std::sqrt(static_cast<double>(dimensions));
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j < dimensions; ++j) {
      w(i, j) = normals.Normal(static_cast<uint64_t>(i * dimensions + j)) / root;
    }
  }
  PHIMAP_RETURN_IF_ERROR(checkpoint(0.9));
  // L_r^{-T}·R/√d3 by substitution, which loses fewer digits than a product with the inverse.
  SolveLowerTriangleTransposed(mapping.factor.view(), w.view());
  PHIMAP_RETURN_IF_ERROR(
      Emit(task, WeightedStages(task, mapping, std::move(w), /*triangular=*/false), mapping));
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  return mapping;
}

}  // namespace phimap
