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

  // Number of monomials of `columns` columns: of the given degree if coef0 is 0, else of all
  // degrees up to it. nullopt if it exceeds kMaxPlanDimension.
  std::optional<int64_t> Monomials(int64_t columns) const;
};

// The expression's parameters, if it is c·linear() or c·poly() with c > 0 and finite, gamma > 0 and
// coef0 >= 0. Before gamma is resolved its number means nothing.
std::optional<PolynomialKernel> PolynomialKernelOf(const KernelExpression& kernel);

// φ(x) = (√(c·q!/(a_0!·a_1! …)·coef0^{a_0}·gamma^{q − a_0})·x_1^{a_1}·x_2^{a_2} …) over all
// exponents a_0 + a_1 + … = q: φ(x)·φ(y) = K(x, y) by the multinomial theorem. In the order of
// their columns, the constant's first. VALUE_NOT_REPRESENTABLE where a factor does not fit into the
// serving type. REQUIRES: kernel.Monomials(columns) is there.
absl::StatusOr<PlanPair> BuildPolynomial(const ServedAs& as, const PolynomialKernel& kernel,
                                         Checkpoint checkpoint);

// Cost and result sizes of BuildPolynomial.
MappingCost CostOfPolynomial(const PolynomialKernel& kernel, int64_t columns,
                             FloatType serving_type);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_POLYNOMIAL_POLYNOMIAL_MAPPING_H_
