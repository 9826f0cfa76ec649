// f2(landmarks=…): the orthogonal projection of φ(x) onto the landmarks' span.
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"

namespace phimap {
namespace {

constexpr absl::string_view kF2Parameters[] = {"landmarks", "input_dimensions", "policy",
                                               "pool_rows", "held_out_rows",    "serving_type"};

MappingCost CostOfF2Mapping(const MappingShape& shape) { return CostOfF2(LandmarkShapeOf(shape)); }

absl::StatusOr<BuiltMapping> BuildF2Mapping(const BuildSpec&, const LandmarkTask& task,
                                            const TileControl& control) {
  return BuildF2(task, control);
}

std::string F2Theorem(const TheoremTask&) {
  return "Balcan, Blum, Vempala 2006, Theorem 1: for a kernel with a separator of margin γ, d "
         "≥ (8/ε)(1/γ² + ln 1/δ) uniform landmarks give, with probability 1 − δ, a linear "
         "separator of error ≤ ε at margin γ/2 on F2";
}

}  // namespace

extern const Family kF2Family;
constinit const Family kF2Family = {
    .name = "f2",
    .line = "the orthogonal projection of φ(x) onto the landmarks' span",
    .parameters = kF2Parameters,
    .kernels = "positive semidefinite kernels",
    .theorem_line = "separators survive at half the margin (Balcan, Blum, Vempala 2006, Theorem 1)",
    .has_factor = true,
    .features_are_projection = true,
    .bounded_by_kernel = true,
    .takes_count_rule = true,
    .theorem_is_of_uniform = true,
    .check_kernel = RequireDefinite,
    .cost = CostOfF2Mapping,
    .build = BuildF2Mapping,
    .gram_share = [](const BuildSpec&, const LandmarkTask& task) { return GramShare(task); },
    .theorem = F2Theorem,
};

}  // namespace phimap
