// f3(landmarks=…, dimensions=…): F2 followed by a random projection.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/projection/projection_mappings.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

constexpr absl::string_view kF3Parameters[] = {"landmarks",        "dimensions",  "projection",
                                               "input_dimensions", "policy",      "pool_rows",
                                               "held_out_rows",    "serving_type"};

absl::Status CheckF3(const MappingSpec& spec) {
  if (spec.dimensions > spec.landmarks) {
    return ParameterOutOfRange("dimensions", "f3 projects to fewer dimensions than landmarks: ", 1,
                               spec.landmarks, spec.dimensions);
  }
  if (spec.projection == ProjectionKind::kGaussian || spec.projection == ProjectionKind::kSign) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kParameterNotApplicable,
                   "projection",
                   "f3 projects with gaussian or sign entries: the projection is folded into the "
                   "landmarks' weights, so other entries would not make it cheaper");
}

MappingCost CostOfF3Mapping(const MappingShape& shape) { return CostOfF3(LandmarkShapeOf(shape)); }

absl::StatusOr<BuiltMapping> BuildF3Mapping(const BuildSpec& spec, const LandmarkTask& task,
                                            const TileControl& control) {
  PHIMAP_ASSIGN_OR_RETURN(BuiltMapping built, BuildF3(task, ProjectionTaskOf(spec), control));
  if (built.rank() < spec.mapping.dimensions) {
    built.warnings.push_back(absl::StrCat("rank ", built.rank(), " is below the ",
                                          CountOf(spec.mapping.dimensions, "dimension"),
                                          ": F2 would be smaller and lose nothing"));
  }
  return built;
}

std::string F3Theorem(const TheoremTask&) {
  return "Balcan, Blum, Vempala 2006, Theorem 3: for a kernel with a separator of margin γ, d2 "
         "≥ (16/ε)(1/γ² + ln 2/δ) uniform landmarks and d3 = O(ln(1/(εδ))/γ²) dimensions give, "
         "with probability 1 − δ, a linear separator of error ≤ ε at margin γ/4 on F3";
}

}  // namespace

extern const Family kF3Family;
constinit const Family kF3Family = {
    .name = "f3",
    .line = "F2 followed by a random projection to fewer dimensions",
    .parameters = kF3Parameters,
    .kernels = "positive semidefinite kernels",
    .theorem_line =
        "separators survive at a quarter of the margin (Balcan, Blum, Vempala 2006, Theorem 3)",
    .has_factor = true,
    .bounded_by_kernel = true,
    .takes_count_rule = true,
    .theorem_is_of_uniform = true,
    .validate = CheckF3,
    .check_kernel = RequireDefinite,
    .cost = CostOfF3Mapping,
    .build = BuildF3Mapping,
    .gram_share = [](const BuildSpec&, const LandmarkTask& task) { return GramShare(task); },
    .theorem = F3Theorem,
};

}  // namespace phimap
