// The exact feature map of a polynomial kernel: its monomials.
#ifndef PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_
#define PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/linalg/work.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/mapping/spec/family.h"

namespace phimap {

// The kernel factor·(gamma·xᵀy + coef0)^degree.
struct PolynomialKernel {
  double factor = 1;
  double gamma = 1;
  double coef0 = 0;
  int degree = 1;

  // Returns the number of monomials of `columns` columns: those of degree `degree` if coef0 is 0,
  // otherwise all up to that degree. Returns nullopt if the number exceeds kMaxPlanDimension.
  std::optional<int64_t> Monomials(int64_t columns) const;
};

// Returns the parameters of a kernel c·linear() or c·poly(), where c and gamma are positive, c is
// finite, and coef0 >= 0. Returns nullopt for any other expression. Until gamma is resolved,
// `gamma` of the result is NaN.
std::optional<PolynomialKernel> PolynomialKernelOf(const KernelExpression& kernel);

// Builds φ, whose features are all monomials of degree q in the columns and a constant. The
// monomial with the exponents a_1, a_2 … of the columns and a_0 of the constant, where a_0 + a_1 +
// … = q, gives the feature
//   √(c·q!/(a_0!·a_1! …)·coef0^{a_0}·gamma^{q − a_0})·x_1^{a_1}·x_2^{a_2} …
// Here c is kernel.factor and q is kernel.degree. By the multinomial theorem, φ(x)·φ(y) = K(x, y).
// Monomials are in lexicographic order of their columns, the constant first.
//
// Errors: VALUE_NOT_REPRESENTABLE if a coefficient does not fit into the serving type. REQUIRES:
// kernel.Monomials(columns) has a value.
absl::StatusOr<PlanPair> BuildPolynomial(const ServedAs& as, const PolynomialKernel& kernel,
                                         Checkpoint checkpoint);

// Returns cost and result sizes of BuildPolynomial.
MappingCost CostOfPolynomial(const PolynomialKernel& kernel, int64_t columns,
                             FloatType serving_type);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_
