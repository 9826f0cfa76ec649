// polynomial(dimensions=…): the monomials of a polynomial kernel, if there are at most
// `dimensions`.
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/kernel/leaf_kernel.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/polynomial/polynomial_mapping.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

constexpr absl::string_view kPolynomialParameters[] = {"dimensions", "pool_rows", "held_out_rows",
                                                       "serving_type"};

absl::Status CheckPolynomialKernel(const BuildSpec& spec) {
  if (PolynomialKernelOf(spec.kernel).has_value()) return absl::OkStatus();
  return KernelNotApplicable(
      spec, "requires linear(), or poly() with gamma > 0, optionally scaled by c > 0");
}

absl::Status CheckMonomials(const BuildSpec& spec, int64_t columns) {
  const std::optional<int64_t> count = PolynomialKernelOf(spec.kernel)->Monomials(columns);
  const int64_t dimensions = spec.mapping.dimensions;
  if (count.has_value() && *count <= dimensions) return absl::OkStatus();
  const std::string limit = absl::StrCat(kMaxDimensions);
  const std::string actual = count.has_value() ? absl::StrCat(*count) : "over " + limit;
  // More dimensions are no remedy where the map needs more than any mapping may have.
  const std::string remedy = count.has_value()
                                 ? absl::StrCat("ask for dimensions=", *count, ", or use f2")
                                 : absl::StrCat("no mapping has more than ", limit,
                                                " dimensions, so use a smaller degree, or f2");
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kDimensionsTooMany, "dimensions",
      absl::StrCat("the exact map of ", spec.kernel.ToText(), " on ", CountOf(columns, "column"),
                   " has ", actual, " monomials, more than dimensions=", dimensions, "; ", remedy,
                   " with as many landmarks as you can afford"),
      {{"limit", absl::StrCat(dimensions)}, {"actual", actual}});
}

MappingCost CostOfMonomials(const MappingShape& shape) {
  return CostOfPolynomial(*PolynomialKernelOf(shape.spec.kernel), shape.columns,
                          shape.serving_type);
}

absl::StatusOr<BuiltMapping> BuildMonomials(const BuildSpec&, const LandmarkTask& task,
                                            const TileControl& control) {
  BuiltMapping built;
  PlanPair& plans = built;
  PHIMAP_ASSIGN_OR_RETURN(
      plans,
      BuildPolynomial({.input = task.input, .serving_type = task.serving_type},
                      *PolynomialKernelOf(task.kernel), [&](double f) { return control(f); }));
  return built;
}

std::string PolynomialTheorem(const TheoremTask&) {
  return "none is needed: F(x)·F(y) = K(x, y) but for rounding, by the multinomial theorem, so "
         "that every margin in φ-space is one on F";
}

}  // namespace

extern const Family kPolynomialFamily;
constinit const Family kPolynomialFamily = {
    .name = "polynomial",
    .line = "the monomials of a polynomial kernel: F(x)·F(y) is K(x, y)",
    .parameters = kPolynomialParameters,
    .dimensions_line = "maximum number of features",
    .kernels = "powers of γ·xᵀy + r with γ > 0 and r ≥ 0, optionally scaled by c > 0",
    .takes_leaf = [](const LeafKernel& leaf) { return leaf.affine_power != nullptr; },
    .theorem_line = "exact, except for rounding",
    .theorem_scope = "all rows",
    .check_kernel = CheckPolynomialKernel,
    .check_columns = CheckMonomials,
    .cost = CostOfMonomials,
    .build = BuildMonomials,
    .theorem = PolynomialTheorem,
};

}  // namespace phimap
