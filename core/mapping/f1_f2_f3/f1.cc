// f1(landmarks=…): similarities to the landmarks.
#include <numeric>
#include <utility>

#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr absl::string_view kF1Parameters[] = {"landmarks", "input_dimensions", "policy",
                                               "pool_rows", "held_out_rows",    "serving_type"};

MappingCost CostOfF1Mapping(const MappingShape& shape) { return CostOfF1(LandmarkShapeOf(shape)); }

absl::StatusOr<BuiltMapping> BuildF1Mapping(const BuildSpec&, const LandmarkTask& task,
                                            const TileControl&) {
  PHIMAP_ASSIGN_OR_RETURN(BuiltMapping built, BuildF1(task));
  return built;
}

std::string F1Theorem(const TheoremTask&) {
  return "Balcan, Blum, Vempala 2006, Corollary 1: for a kernel with a separator of margin γ, "
         "d ≥ (8/ε)(1/γ² + ln 1/δ) uniform landmarks give, with probability 1 − δ, a linear "
         "separator of error ≤ ε on F1";
}

}  // namespace

extern const Family kF1Family;
constinit const Family kF1Family = {
    .name = "f1",
    .line = "similarities to the landmarks: K(x, x_1) … K(x, x_d)",
    .parameters = kF1Parameters,
    .kernels = "any similarity",
    .theorem_line = "separators survive (Balcan, Blum, Vempala 2006, Corollary 1)",
    .approximates_kernel = false,
    .aim = Aim::kSimilarities,
    .takes_similarities = true,
    .takes_count_rule = true,
    .theorem_is_of_uniform = true,
    .cost = CostOfF1Mapping,
    .build = BuildF1Mapping,
    .theorem = F1Theorem,
};

}  // namespace phimap
