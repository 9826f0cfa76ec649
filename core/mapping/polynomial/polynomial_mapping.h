// The exact feature map of a polynomial kernel: its monomials.
#ifndef PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_
#define PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/linalg/checkpoint.h"
#include "core/mapping/builder/plan_pair.h"
#include "core/mapping/spec/mapping_cost.h"

namespace phimap {

// factor·(gamma·xᵀy + coef0)^degree.
struct PolynomialKernel {
  double factor = 1;
  double gamma = 1;
  double coef0 = 0;
  int degree = 1;

  // Returns the number of monomials of `columns` columns: those of degree `degree` if coef0 is 0,
  // otherwise all up to that degree. Returns nullopt if the number exceeds kMaxPlanDimension.
  std::optional<int64_t> Monomials(int64_t columns) const;
};

// Returns the parameters of c·linear() or c·poly() with c > 0 and finite, gamma > 0 and coef0 >= 0,
// and nullopt for any other expression. `gamma` of the result is NaN until gamma is resolved.
std::optional<PolynomialKernel> PolynomialKernelOf(const KernelExpression& kernel);

// Builds φ(x) = (√(c·q!/(a_0!·a_1! …)·coef0^{a_0}·gamma^{q − a_0})·x_1^{a_1}·x_2^{a_2} …) over all
// exponents a_0 + a_1 + … = q. φ(x)·φ(y) = K(x, y) by the multinomial theorem. Monomials are in
// lexicographic order of their columns, the constant first. VALUE_NOT_REPRESENTABLE if a factor
// does not fit into the serving type. REQUIRES: kernel.Monomials(columns) has a value.
absl::StatusOr<PlanPair> BuildPolynomial(const ServedAs& as, const PolynomialKernel& kernel,
                                         Checkpoint checkpoint);

// Returns cost and result sizes of BuildPolynomial.
MappingCost CostOfPolynomial(const PolynomialKernel& kernel, int64_t columns,
                             FloatType serving_type);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_
