// kpca(landmarks=…, dimensions=…): kernel principal components of the landmarks.
#include <utility>

#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/mapping/kernel_pca/kernel_pca_theorem.h"
#include "core/mapping/landmarks/landmark_mapping.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/kernel_requirements.h"
#include "core/mapping/spec/mapping_table.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr absl::string_view kPcaParameters[] = {
    "landmarks", "dimensions",       "centred", "sparsify",  "quantise",
    "rounding",  "input_dimensions", "policy",  "pool_rows", "serving_type"};

absl::Status CheckComponents(const MappingSpec& spec) {
  if (spec.dimensions <= spec.landmarks) return absl::OkStatus();
  return ParameterOutOfRange("dimensions", "no more components than landmarks: ", 1, spec.landmarks,
                             spec.dimensions);
}

KernelPcaTask PcaTaskOf(const BuildSpec& spec) {
  return {.components = spec.mapping.dimensions,
          .centred = spec.mapping.centred,
          .seed = spec.seed,
          .gram = {spec.mapping.sparsify, spec.mapping.quantise},
          .rounding = spec.mapping.rounding};
}

MappingCost CostOfPcaMapping(const MappingShape& shape) {
  return CostOfKernelPca(LandmarkShapeOf(shape), PcaTaskOf(shape.spec));
}

absl::StatusOr<BuiltMapping> BuildPcaMapping(const BuildSpec& spec, const LandmarkTask& task,
                                             const TileControl& control) {
  PHIMAP_ASSIGN_OR_RETURN(KernelPca found, BuildMeasuredKernelPca(task, PcaTaskOf(spec), control));
  BuiltMapping built;
  built.theorem = KernelPcaTheorem(spec.mapping, found);
  built.warnings = WarningsOf(found, spec.mapping.dimensions);
  built.gram_mean = found.gram_mean;
  built.used = std::move(found.used);
  built.lost_rank = task.serving_type == FloatType::kFloat32 &&
                    static_cast<int64_t>(found.eigenvalues.size()) < spec.mapping.dimensions;
  static_cast<PlanPair&>(built) = std::move(found);
  return built;
}

double GramShareOfPca(const BuildSpec& spec, const LandmarkTask& task) {
  return StepsOfKernelPca(task, PcaTaskOf(spec)).gram;
}

}  // namespace

extern const Mapping kKernelPcaMapping;
constinit const Mapping kKernelPcaMapping = {
    .name = "kpca",
    .long_name = "kernel_pca",
    .line = "kernel principal components of the landmarks",
    .parameters = kPcaParameters,
    .kernels = "positive semidefinite kernels",
    .theorem_line =
        "loses the least of all linear maps of this size (Schölkopf, Smola, Müller 1998)",
    .bounded_by_kernel = true,
    .theorem_scope = "the landmarks themselves, not rows to come",
    .validate = CheckComponents,
    .check_kernel = RequireDefinite,
    .centres_kernel = [](const MappingSpec& spec) { return spec.centred; },
    .cost = CostOfPcaMapping,
    .build = BuildPcaMapping,
    .gram_share = GramShareOfPca,
};

}  // namespace phimap
