#include "core/mapping/landmark_mapping.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/blas.h"
#include "core/linalg/triangular_inverse.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Columns of F3's matrix that one thread solves at a time.
constexpr int64_t kSolvedColumns = 128;

Matrix<double> RoundedRows(const LandmarkTask& task) {
  return RoundedTo(task.serving_type, task.landmarks);
}

// Before any kernel value is computed: of a row that overflowed, K(x, x) could come out as 0.
absl::Status CheckRounded(const LandmarkTask& task, const Matrix<double>& rows) {
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(rows.data()[i])) continue;
    return NotRepresentable(task.serving_type,
                            absl::StrCat("column ", i % rows.cols(), " of landmark ",
                                         i / rows.cols(), " is ", rows.data()[i]));
  }
  return absl::OkStatus();
}

absl::Status Emit(const LandmarkTask& task, const StageNumbers& stages, LandmarkMapping& mapping) {
  return EmitPlans({.input = task.input, .serving_type = task.serving_type}, stages, mapping);
}

// Where the steps begin among what is reported: the factorization and what comes after it, which
// takes about as long as the triangle's inverse.
struct Steps {
  double factor = 0;
  double rest = 0;
};

double GramWork(const LandmarkTask& task) {
  if (task.outside != nullptr) return 0;
  const int64_t p = task.landmarks.cols();
  return WorkOfKernelBlock(1, TiledTriangle(task.count()), static_cast<double>(p),
                           WorkOfValue(task.kernel, p))
      .weight();
}

Steps StepsOf(const LandmarkTask& task) {
  const int64_t d = task.count();
  const double gram = GramWork(task);
  const double factor = WorkOfFactorPivoted(d, d).weight();
  const double all = gram + factor + WorkOfTransposedInverse(d).weight();
  return {gram / all, (gram + factor) / all};
}

// Gram matrix of the served rows, its factorization, and the pivots' rows.
absl::Status FactorLandmarks(const LandmarkTask& task, const TileControl& control,
                             LandmarkMapping& mapping) {
  const int64_t d = task.count();
  const Steps steps = StepsOf(task);
  Matrix<double> rows;
  if (task.outside == nullptr) {
    PHIMAP_ASSIGN_OR_RETURN(rows, ServedLandmarks(task));
  }
  // The factorization goes down columns: their elements must not share the sets of a cache.
  Matrix<double> storage = Matrix<double>::Uninit(d, SpreadStride<double>(d));
  const MatrixView<double> gram = storage.view().Block(0, 0, d, d);
  if (task.outside != nullptr) {
    for (int64_t i = 0; i < d; ++i) std::copy_n(task.outside->gram.row(i), i + 1, gram.row(i));
  } else {
    PHIMAP_RETURN_IF_ERROR(
        KernelGram(KernelProgram::Compile(task.kernel), std::as_const(rows).view(), gram,
                   {control.threads_ref(), [&](double f) { return control(steps.factor * f); }}));
  }
  double largest = 0;
  for (int64_t i = 0; i < d; ++i) {
    largest = std::max(largest, gram(i, i));
    mapping.trace += gram(i, i);
  }
  const double unit = task.outside != nullptr ? task.outside->unit : 0x1p-53;
  const double u =
      std::max(unit, std::ldexp(1.0, task.serving_type == FloatType::kFloat32 ? -24 : -53));
  mapping.tolerance = static_cast<double>(d) * u * largest;
  PHIMAP_ASSIGN_OR_RETURN(
      mapping.cholesky,
      FactorPivoted(
          gram, mapping.tolerance,
          {control.threads_ref(),
           [&](double f) { return control(steps.factor + (steps.rest - steps.factor) * f); }},
          unit));
  const int64_t r = mapping.cholesky.rank();
  if (r == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "ZERO_KERNEL", "kernel",
                     "K(x, x) is 0 on every landmark, so that there is no direction to project on");
  }
  mapping.factor = Matrix<double>(r, r);
  mapping.pivots = Matrix<double>::Uninit(r, rows.cols());
  for (int64_t i = 0; i < r; ++i) {
    std::copy_n(gram.row(i), i + 1, mapping.factor.row(i));
    if (rows.empty()) continue;
    std::copy_n(rows.row(mapping.cholesky.pivots[i]), rows.cols(), mapping.pivots.row(i));
  }
  return control(steps.rest);
}

// With K(x, a) = c·x·a, k_r(x)·W = x·(c·A'ᵀ·W): one matrix, stored transposed as the rows of the
// feature stage.
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

// The stages of F(x) = k_r(x)·w, with w upper triangular or dense; a linear kernel folds.
StageNumbers WeightedStages(const LandmarkTask& task, const LandmarkMapping& mapping,
                            Matrix<double> w, bool triangular) {
  double factor = 0;
  if (task.outside == nullptr && task.kernel.IsScaledLinear(&factor)) {
    return FoldLinear(factor, mapping.pivots, w);
  }
  StageNumbers stages;
  if (task.outside != nullptr) {
    stages.external = WithExamples(task.outside->block, mapping.cholesky.pivots);
  } else {
    stages.rows = mapping.pivots.Clone();
    stages.program = KernelProgram::Compile(task.kernel);
  }
  (triangular ? stages.upper_triangle : stages.dense) = std::move(w);
  return stages;
}

}  // namespace

double GramShare(const LandmarkTask& task) { return StepsOf(task).factor; }

absl::StatusOr<Matrix<double>> ServedLandmarks(const LandmarkTask& task) {
  Matrix<double> rows = RoundedRows(task);
  PHIMAP_RETURN_IF_ERROR(CheckRounded(task, rows));
  return rows;
}

absl::StatusOr<LandmarkMapping> BuildF1(const LandmarkTask& task) {
  StageNumbers stages;
  if (task.outside != nullptr) {
    stages.external = task.outside->block;
  } else {
    stages.rows = RoundedRows(task);
    stages.program = KernelProgram::Compile(task.kernel);
  }
  LandmarkMapping mapping;
  PHIMAP_RETURN_IF_ERROR(Emit(task, stages, mapping));
  return mapping;
}

absl::StatusOr<LandmarkMapping> BuildF2(const LandmarkTask& task, const TileControl& control) {
  LandmarkMapping mapping;
  PHIMAP_RETURN_IF_ERROR(FactorLandmarks(task, control, mapping));
  const double rest = StepsOf(task).rest;
  PHIMAP_ASSIGN_OR_RETURN(Matrix<double> w,
                          TransposedInverseOfLowerTriangle(std::as_const(mapping.factor).view(),
                                                           {control.threads_ref(), [&](double f) {
                                                              return control(rest + (1 - rest) * f);
                                                            }}));
  PHIMAP_RETURN_IF_ERROR(
      Emit(task, WeightedStages(task, mapping, std::move(w), /*triangular=*/true), mapping));
  PHIMAP_RETURN_IF_ERROR(control(1));
  return mapping;
}

absl::StatusOr<LandmarkMapping> BuildF3(const LandmarkTask& task, const ProjectionTask& projection,
                                        const TileControl& control) {
  PHIMAP_CHECK(projection.dimensions >= 1 && projection.kind != ProjectionKind::kOrthonormal);
  LandmarkMapping mapping;
  PHIMAP_RETURN_IF_ERROR(FactorLandmarks(task, control, mapping));
  const int64_t r = mapping.factor.rows();
  Matrix<double> w = Matrix<double>::Uninit(r, projection.dimensions);
  FillProjection(projection.kind, projection.seed,
                 1 / std::sqrt(static_cast<double>(projection.dimensions)), w.view());
  // L_r^{-T}·R/√d3 by substitution, which loses fewer digits than a product with the inverse.
  const double rest = StepsOf(task).rest;
  const auto solve = [&](int64_t t) {
    const int64_t begin = t * kSolvedColumns;
    const int64_t count = std::min(kSolvedColumns, w.cols() - begin);
    SolveLowerTriangleTransposed(std::as_const(mapping.factor).view(),
                                 w.view().Block(0, begin, r, count));
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(
      control.threads(), (w.cols() + kSolvedColumns - 1) / kSolvedColumns,
      [&](double f) { return control(rest + (1 - rest) * f); }, solve));
  PHIMAP_RETURN_IF_ERROR(
      Emit(task, WeightedStages(task, mapping, std::move(w), /*triangular=*/false), mapping));
  PHIMAP_RETURN_IF_ERROR(control(1));
  return mapping;
}

}  // namespace phimap
