// multiclass(classes=…, dimensions=…): a random projection of the inputs for each class, so that
// one weight vector separates all classes.
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/projection/projection_mappings.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

constexpr absl::string_view kMulticlassParameters[] = {"classes", "dimensions", "projection",
                                                       "held_out_rows", "serving_type"};

absl::Status CheckClasses(const MappingSpec& spec) {
  const int64_t most = kMaxDimensions / spec.classes;
  if (spec.dimensions <= most) return absl::OkStatus();
  return ParameterOutOfRange(
      "dimensions",
      absl::StrCat("each of the ", spec.classes,
                   " classes has this many, and all together at most ", kMaxDimensions, ": "),
      1, most, spec.dimensions);
}

std::string MulticlassTheorem(const TheoremTask& task) {
  const int64_t n = task.spec.dimensions;
  const int64_t classes = task.spec.classes;
  // Theorem 9 needs m(L − 1) angles to be preserved, and each angle needs three events of Lemma 10.
  const double angles = static_cast<double>(kTheoremRows) * static_cast<double>(classes - 1);
  const std::optional<double> e = LengthDistortion(Tier::kDerived, n, kTheoremDelta / (3 * angles));
  const double least =
      e.has_value() ? 2 * *e * std::sqrt(2.0 * static_cast<double>(classes)) / (1 + *e) : 2;
  return absl::StrCat(
      "Shi, Shen, Hill, van den Hengel 2012, Theorem 9: where w_1 … w_L separate L classes with a "
      "margin γ of cosines, one v of n numbers separates them by ⟨v, R_y x⟩ with the margin −2e/(1 "
      "− e) + (1 + e)γ/(√(2L)(1 − e)), with probability 1 − 6m(L − 1) exp(−(n/2)(e²/2 − e³/3)). At "
      "n "
      "= ",
      n, " and m = 1,000 rows with probability 0.95: ",
      e.has_value() ? absl::StrFormat("e = %.2g", *e) : "no e below 1",
      least <= 1 ? absl::StrFormat(", more than nothing from γ = %.3g on", least)
                 : ", which promises nothing for any margin: n grows with L");
}

}  // namespace

extern const Family kMulticlassFamily;
constinit const Family kMulticlassFamily = {
    .name = "multiclass",
    .line = "a random projection of the inputs for each class: one weight vector separates all",
    .parameters = kMulticlassParameters,
    .dimensions_line = "number of features of each class",
    .kernels = "linear(), optionally scaled by c > 0",
    .takes_leaf = [](const LeafKernel& leaf) { return leaf.is_inner_product; },
    .default_kernel = "linear()",
    .theorem_line = "one weight vector for all classes (Shi and others 2012, Theorem 9)",
    // F(x)·F(y) approximates K(x, y) times the number of classes.
    .approximates_kernel = false,
    .aim = Aim::kClasses,
    .theorem_scope = "rows that do not depend on the seed, as they are after scaling",
    .validate = CheckClasses,
    .check_kernel = RequireLinear,
    .check_columns = CheckOrthonormalRows,
    .cost = CostOfProjectionMapping,
    .build = BuildProjectionMapping,
    .theorem = MulticlassTheorem,
};

}  // namespace phimap
