#include "core/mapping/f1_f2_f3/landmark_mapping.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_work.h"
#include "core/linalg/blas.h"
#include "core/linalg/triangular_inverse.h"
#include "core/mapping/spec/build_spec.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Columns of F3's matrix that one thread solves at a time.
constexpr int64_t kSolvedColumns = 128;

absl::Status Emit(const LandmarkTask& task, const StageNumbers& stages, BuiltMapping& mapping) {
  return EmitPlans({.input = task.input, .serving_type = task.serving_type}, stages, mapping);
}

// Folds a linear kernel and its weights W into one matrix. The kernel is K(x, a) = c·x·a, with c =
// `factor`. Let A be the matrix whose rows are the pivots. The features are then k_r(x)·W =
// x·(c·Aᵀ·W). The matrix c·Aᵀ·W is stored transposed, as the rows of the feature stage.
StageNumbers FoldLinear(double factor, const Matrix<double>& pivots, const Matrix<double>& w) {
  Matrix<double> wt = Matrix<double>::Uninit(w.cols(), w.rows());
  for (int64_t i = 0; i < w.rows(); ++i) {
    for (int64_t j = 0; j < w.cols(); ++j) wt(j, i) = w(i, j);
  }
  StageNumbers stages;
  stages.rows = Matrix<double>::Uninit(w.cols(), pivots.cols());
  Multiply(factor, wt.view(), pivots.view(), 0, stages.rows.view());
  return stages;
}

// Returns the stages of F(x) = k_r(x)·w, where k_r(x) has the kernel values of x with the pivots.
// `triangular` means that `w` is upper triangular. Folds a linear kernel into one matrix.
StageNumbers WeightedStages(const LandmarkTask& task, const BuiltMapping& mapping, Matrix<double> w,
                            bool triangular) {
  double factor = 0;
  if (task.remote == nullptr && task.kernel.IsScaledLinear(&factor)) {
    return FoldLinear(factor, mapping.pivots, w);
  }
  StageNumbers stages;
  if (task.remote != nullptr) {
    stages.remote = WithExamples(task.remote->block, mapping.cholesky.pivots);
  } else {
    stages.rows = mapping.pivots.Clone();
    stages.program = KernelProgram::Compile(task.kernel);
  }
  if (triangular) {
    stages.upper_triangle = std::move(w);
    stages.self_values = mapping.self;
  } else {
    stages.dense = std::move(w);
  }
  return stages;
}

}  // namespace

double GramShare(const LandmarkTask& task) { return SharesOfFactor(task).gram; }

absl::StatusOr<BuiltMapping> BuildF1(const LandmarkTask& task) {
  StageNumbers stages;
  if (task.remote != nullptr) {
    stages.remote = task.remote->block;
  } else {
    stages.rows = RoundedTo(task.serving_type, task.landmarks);
    stages.program = KernelProgram::Compile(task.kernel);
  }
  BuiltMapping mapping;
  mapping.used.resize(static_cast<size_t>(task.count()));
  std::iota(mapping.used.begin(), mapping.used.end(), 0);
  PHIMAP_RETURN_IF_ERROR(Emit(task, stages, mapping));
  return mapping;
}

absl::StatusOr<BuiltMapping> BuildF2(const LandmarkTask& task, const TileControl& control) {
  BuiltMapping mapping;
  LandmarkFactor& landmarks = mapping;
  PHIMAP_ASSIGN_OR_RETURN(landmarks, FactorLandmarks(task, control));
  mapping.used = mapping.cholesky.pivots;
  mapping.lost_rank = mapping.tail.rank() > 0;
  const double rest = SharesOfFactor(task).factor;
  PHIMAP_ASSIGN_OR_RETURN(Matrix<double> w,
                          TransposedInverseOfLowerTriangle(std::as_const(mapping.factor).view(),
                                                           {control.threads_ref(), [&](double f) {
                                                              return control(rest + (1 - rest) * f);
                                                            }}));
  ScaleWeights(landmarks, w.view());
  Denormalise(landmarks);
  PHIMAP_RETURN_IF_ERROR(
      Emit(task, WeightedStages(task, mapping, std::move(w), /*triangular=*/true), mapping));
  PHIMAP_RETURN_IF_ERROR(control(1));
  return mapping;
}

absl::StatusOr<BuiltMapping> BuildF3(const LandmarkTask& task, const ProjectionTask& projection,
                                     const TileControl& control) {
  PHIMAP_CHECK(projection.dimensions >= 1 && projection.kind != ProjectionKind::kOrthonormal);
  BuiltMapping mapping;
  LandmarkFactor& landmarks = mapping;
  PHIMAP_ASSIGN_OR_RETURN(landmarks, FactorLandmarks(task, control));
  mapping.used = mapping.cholesky.pivots;
  mapping.lost_rank = mapping.tail.rank() > 0;
  const int64_t r = mapping.factor.rows();
  Matrix<double> w = Matrix<double>::Uninit(r, projection.dimensions);
  FillProjection(projection.kind, projection.seed,
                 1 / std::sqrt(static_cast<double>(projection.dimensions)), w.view());
  // Computes L_r^{-T}·R/√d3 by substitution, which loses fewer digits than a product with the
  // inverse of the factor L_r. At this point w holds R/√d3, where d3 is the number of dimensions.
  const double rest = SharesOfFactor(task).factor;
  const auto solve = [&](int64_t t) {
    const int64_t begin = t * kSolvedColumns;
    const int64_t count = std::min(kSolvedColumns, w.cols() - begin);
    SolveLowerTriangleTransposed(std::as_const(mapping.factor).view(),
                                 w.view().Block(0, begin, r, count));
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(
      control.threads(), (w.cols() + kSolvedColumns - 1) / kSolvedColumns,
      [&](double f) { return control(rest + (1 - rest) * f); }, solve));
  ScaleWeights(landmarks, w.view());
  Denormalise(landmarks);
  PHIMAP_RETURN_IF_ERROR(
      Emit(task, WeightedStages(task, mapping, std::move(w), /*triangular=*/false), mapping));
  PHIMAP_RETURN_IF_ERROR(control(1));
  return mapping;
}

namespace {

constexpr int64_t kDouble = sizeof(double);

// Work of FactorLandmarks.
Work FactorWork(const LandmarkShape& shape) {
  Work work = WorkOfKernelBlock(1, TiledTriangle(shape.landmarks),
                                static_cast<double>(shape.columns), shape.value);
  return work += WorkOfFactorPivoted(shape.landmarks, shape.rank);
}

// Returns the bytes of the factor and the pivots' rows, which are kept for the certificate.
int64_t FactorBytes(const LandmarkShape& shape) {
  return kDouble * shape.rank * (shape.rank + shape.columns);
}

// Returns the peak memory of FactorLandmarks: the rounded rows and the Gram matrix, plus tiles of
// the Gram matrix at first or the factor at the end.
int64_t FactoringBytes(const LandmarkShape& shape) {
  const int64_t d = shape.landmarks;
  const int64_t tiles = std::min<int64_t>(shape.threads, (d + 255) / 256);
  return kDouble * d * (shape.columns + SpreadStride<double>(d)) +
         std::max(FactorBytes(shape), kDouble * 256 * d * tiles);
}

// Sets the sizes of a plan with r kernel values and a projection of `weights` numbers. For a linear
// kernel, both are folded into one matrix of `outputs` rows.
void SetPlan(const LandmarkShape& shape, int64_t weights, int64_t outputs, MappingCost& cost) {
  cost.output_columns = outputs;
  cost.plan_numbers = shape.linear ? outputs * shape.columns : shape.rank * shape.columns + weights;
  // A kernel without inner products needs no products with the pivots.
  const double products = shape.linear ? 1 : shape.value.products;
  cost.row.product_flops =
      2 * static_cast<double>(cost.plan_numbers) -
      2 * (1 - products) * static_cast<double>(shape.rank) * static_cast<double>(shape.columns);
  cost.row.elements = shape.linear ? 0 : static_cast<double>(shape.rank) * shape.value.elements;
}

// Sets the memory of F2 and F3. `passing` bytes are needed only temporarily, while the weights and
// the plans are made.
void SetBytes(const LandmarkShape& shape, int64_t passing, MappingCost& cost) {
  cost.kept_bytes = FactorBytes(shape) + PlanPairBytes(shape.serving_type, cost.plan_numbers);
  cost.build_bytes = std::max(FactoringBytes(shape), cost.kept_bytes + passing);
}

}  // namespace

LandmarkShape LandmarkShapeOf(const MappingShape& shape) {
  const BuildSpec& spec = shape.spec;
  const int64_t columns = shape.columns;
  double factor = 0;
  const int64_t landmarks = spec.mapping.landmarks;
  if (spec.remote.has_value()) {
    // With precomputed() values, a plan stores only the row number of each landmark.
    return {.landmarks = landmarks,
            .columns = spec.is_precomputed() ? 1 : columns,
            .rank = landmarks,
            .dimensions = spec.mapping.dimensions,
            .projection = spec.mapping.projection,
            .serving_type = shape.serving_type,
            .threads = shape.threads};
  }
  return {.landmarks = landmarks,
          .columns = columns,
          .rank = std::min(landmarks, FeatureDimension(spec.kernel, columns).value_or(landmarks)),
          .dimensions = spec.mapping.dimensions,
          .projection = spec.mapping.projection,
          .serving_type = shape.serving_type,
          .linear = spec.kernel.IsScaledLinear(&factor),
          .value = WorkOfValue(spec.kernel, columns),
          .threads = shape.threads};
}

MappingCost CostOfF1(const LandmarkShape& shape) {
  MappingCost cost;
  cost.plan_numbers = shape.landmarks * shape.columns;
  cost.output_columns = shape.landmarks;
  cost.row.product_flops = 2 * shape.value.products * static_cast<double>(cost.plan_numbers);
  cost.row.elements = static_cast<double>(shape.landmarks) * shape.value.elements;
  cost.work.elements = static_cast<double>(cost.plan_numbers);
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers);
  cost.build_bytes = cost.kept_bytes + kDouble * cost.plan_numbers;
  return cost;
}

MappingCost CostOfF2(const LandmarkShape& shape) {
  const int64_t r = shape.rank;
  const double rank = static_cast<double>(r);
  MappingCost cost{.work = FactorWork(shape), .rank = r};
  cost.work += WorkOfTransposedInverse(r);
  if (shape.linear) cost.work.product_flops += 2 * rank * rank * static_cast<double>(shape.columns);
  SetPlan(shape, r * (r + 1) / 2, r, cost);
  // Temporary: the inverse of the factor and a copy of the pivots' rows.
  SetBytes(shape, kDouble * r * (r + shape.columns), cost);
  cost.work.elements += 4 * static_cast<double>(cost.plan_numbers);
  return cost;
}

MappingCost CostOfF3(const LandmarkShape& shape) {
  const double rank = static_cast<double>(shape.rank);
  const double dimensions = static_cast<double>(shape.dimensions);
  MappingCost cost{.work = FactorWork(shape), .rank = shape.rank};
  cost.work.elements += ElementsOfEntry(shape.projection) * rank * dimensions;
  cost.work.product_flops += rank * rank * dimensions;
  if (shape.linear) {
    cost.work.product_flops += 2 * rank * dimensions * static_cast<double>(shape.columns);
  }
  SetPlan(shape, shape.rank * shape.dimensions, shape.dimensions, cost);
  // Temporary: the weights and a copy of the pivots' rows.
  SetBytes(shape, kDouble * shape.rank * (shape.dimensions + shape.columns), cost);
  cost.work.elements += 2 * static_cast<double>(cost.plan_numbers);
  return cost;
}

}  // namespace phimap
