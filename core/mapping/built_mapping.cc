#include "core/mapping/built_mapping.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/mapping/fourier_mapping.h"
#include "core/mapping/polynomial_mapping.h"
#include "core/mapping/random_projection.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

ProjectionTask ProjectionOf(const BuildSpec& spec) {
  return {.kind = spec.mapping.projection,
          .dimensions = spec.mapping.dimensions,
          .seed = spec.seed,
          .blocks = std::max<int64_t>(1, spec.mapping.classes)};
}

KernelPcaTask PcaTaskOf(const BuildSpec& spec) {
  return {.components = spec.mapping.dimensions,
          .centred = spec.mapping.centred,
          .seed = spec.seed,
          .gram = {spec.mapping.sparsify, spec.mapping.quantise},
          .rounding = spec.mapping.rounding};
}

// A mapping that knows no landmarks: its numbers are drawn.
absl::StatusOr<PlanPair> BuildFree(const BuildSpec& spec, const LandmarkTask& task,
                                   BuildProgress& progress) {
  const ServedAs as{.input = task.input, .serving_type = task.serving_type};
  const auto checkpoint = [&](double f) { return progress.Report(BuildStep::kMapping, "draw", f); };
  if (spec.mapping.kind == MappingKind::kFourier) {
    return BuildFourier(as,
                        {.kernel = *FourierKernelOf(task.kernel),
                         .form = spec.mapping.form,
                         .orthogonal = spec.mapping.orthogonal,
                         .dimensions = spec.mapping.dimensions,
                         .seed = spec.seed},
                        checkpoint);
  }
  if (spec.mapping.kind == MappingKind::kPolynomial) {
    return BuildPolynomial(as, *PolynomialKernelOf(task.kernel), checkpoint);
  }
  double factor = 0;
  PHIMAP_CHECK(task.kernel.IsScaledLinear(&factor));
  return BuildRandomProjection(as, factor, ProjectionOf(spec), checkpoint);
}

absl::StatusOr<BuiltMapping> BuildPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                      const TileControl& control) {
  BuiltMapping mapping;
  PHIMAP_ASSIGN_OR_RETURN(mapping.kernel_pca, BuildMeasuredKernelPca(task, pca, control));
  static_cast<PlanPair&>(mapping) = std::move(mapping.kernel_pca);
  mapping.used = mapping.kernel_pca.used;
  return mapping;
}

absl::StatusOr<BuiltMapping> BuildFactored(const BuildSpec& spec, const LandmarkTask& task,
                                           const TileControl& control) {
  BuiltMapping mapping;
  LandmarkMapping& factored = mapping;
  if (spec.mapping.kind == MappingKind::kF2) {
    PHIMAP_ASSIGN_OR_RETURN(factored, BuildF2(task, control));
  } else {
    PHIMAP_ASSIGN_OR_RETURN(factored, BuildF3(task, ProjectionOf(spec), control));
  }
  mapping.used = mapping.cholesky.pivots;
  return mapping;
}

absl::StatusOr<BuiltMapping> BuildF1OnAll(const LandmarkTask& task) {
  BuiltMapping mapping;
  LandmarkMapping& rows = mapping;
  PHIMAP_ASSIGN_OR_RETURN(rows, BuildF1(task));
  mapping.used.resize(static_cast<size_t>(task.count()));
  std::iota(mapping.used.begin(), mapping.used.end(), 0);
  return mapping;
}

}  // namespace

absl::StatusOr<BuiltMapping> BuildMapping(const BuildSpec& spec, const LandmarkTask& task,
                                          BuildProgress& progress) {
  if (!spec.mapping.has_landmarks()) {
    BuiltMapping mapping;
    PlanPair& plans = mapping;
    PHIMAP_ASSIGN_OR_RETURN(plans, BuildFree(spec, task, progress));
    return mapping;
  }
  const KernelPcaTask pca = PcaTaskOf(spec);
  const bool is_pca = spec.mapping.kind == MappingKind::kKernelPca;
  const double gram = is_pca ? StepsOfKernelPca(task, pca).gram : GramShare(task);
  const auto threads = [&] { return progress.threads(); };
  const auto checkpoint = [&](double f) {
    return progress.Report(BuildStep::kMapping, f < gram ? "gram" : "factor", f);
  };
  if (spec.mapping.kind == MappingKind::kF1) return BuildF1OnAll(task);
  if (is_pca) return BuildPca(task, pca, {threads, checkpoint});
  return BuildFactored(spec, task, {threads, checkpoint});
}

}  // namespace phimap
