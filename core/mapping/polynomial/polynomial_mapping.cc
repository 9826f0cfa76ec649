#include "core/mapping/polynomial/polynomial_mapping.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Returns the coefficient of one monomial. `columns` lists its q columns in ascending order, and −1
// stands for the constant. With a_0 the number of times that the constant occurs, and a_1, a_2 …
// the same for the columns, the coefficient is
//   √(c·q!/(a_0!·a_1! …)·coef0^{a_0}·gamma^{q − a_0}), where c = kernel.factor.
// The quotient q!/(a_0!·a_1! …) is a product of q factors. Factor i is i, divided by the number of
// times that the i-th column has occurred so far. The product is an integer after each step.
double CoefficientOf(const PolynomialKernel& kernel, const std::vector<int32_t>& columns) {
  double count = 1;
  double run = 0;
  double powers = std::sqrt(kernel.factor);
  for (size_t i = 0; i < columns.size(); ++i) {
    run = i > 0 && columns[i] == columns[i - 1] ? run + 1 : 1;
    count = count * static_cast<double>(i + 1) / run;
    powers *= std::sqrt(columns[i] < 0 ? kernel.coef0 : kernel.gamma);
  }
  return std::sqrt(count) * powers;
}

// Advances `columns` to the next ascending sequence of columns up to `last`. Returns false if there
// is none.
bool Advance(int32_t last, std::vector<int32_t>& columns) {
  for (size_t i = columns.size(); i-- > 0;) {
    if (columns[i] == last) continue;
    const int32_t next = columns[i] + 1;
    for (size_t k = i; k < columns.size(); ++k) columns[k] = next;
    return true;
  }
  return false;
}

}  // namespace

std::optional<int64_t> PolynomialKernel::Monomials(int64_t columns) const {
  // The number is C(n + q − 1, q), where n counts the columns and, if coef0 > 0, the constant.
  const int64_t n = columns + (coef0 > 0 ? 1 : 0);
  int64_t count = 1;
  for (int64_t i = 1; i <= degree; ++i) {
    // The division is exact: after i steps the count is a product of i consecutive numbers divided
    // by i!, which is an integer. The product before the division is less than 65,536·131,072.
    count = count * (n + i - 1) / i;
    if (count > kMaxPlanDimension) return std::nullopt;
  }
  return count;
}

std::optional<PolynomialKernel> PolynomialKernelOf(const KernelExpression& kernel) {
  PolynomialKernel found;
  const KernelNode* const node = kernel.ScaledLeaf(&found.factor);
  if (node == nullptr || node->leaf->affine_power == nullptr) return std::nullopt;
  const std::optional<AffinePower> power = node->leaf->affine_power(node->values);
  if (!power.has_value()) return std::nullopt;
  found.gamma = power->gamma;
  found.coef0 = power->coef0;
  found.degree = power->degree;
  if (!(found.factor > 0) || !std::isfinite(found.factor) || !(found.coef0 >= 0)) {
    return std::nullopt;
  }
  // NaN means that gamma is not resolved yet; it will be > 0.
  if (found.gamma <= 0) return std::nullopt;
  return found;
}

absl::StatusOr<PlanPair> BuildPolynomial(const ServedAs& as, const PolynomialKernel& kernel,
                                         Checkpoint checkpoint) {
  const std::optional<int64_t> count = kernel.Monomials(as.input.output_columns());
  PHIMAP_CHECK(count.has_value());
  const auto last = static_cast<int32_t>(as.input.output_columns() - 1);
  StageNumbers stages;
  stages.expansion.degree = kernel.degree;
  std::vector<int32_t> columns(static_cast<size_t>(kernel.degree), kernel.coef0 > 0 ? -1 : 0);
  do {
    stages.expansion.coefficients.push_back(CoefficientOf(kernel, columns));
    stages.expansion.columns.insert(stages.expansion.columns.end(), columns.begin(), columns.end());
  } while (Advance(last, columns));
  PHIMAP_CHECK(static_cast<int64_t>(stages.expansion.coefficients.size()) == *count);
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  PlanPair plans;
  PHIMAP_RETURN_IF_ERROR(EmitPlans(as, stages, plans));
  return plans;
}

MappingCost CostOfPolynomial(const PolynomialKernel& kernel, int64_t columns,
                             FloatType serving_type) {
  const int64_t count = kernel.Monomials(columns).value_or(kMaxPlanDimension);
  const int64_t width = FloatTypeBytes(serving_type);
  // The index of a column takes four bytes.
  const int64_t indices = (4 * count * kernel.degree + width - 1) / width;
  const double factors = static_cast<double>(count) * kernel.degree;
  MappingCost cost{.plan_numbers = count + indices, .output_columns = count};
  cost.work.elements = 2 * factors;
  cost.row.elements = factors / 3;
  cost.kept_bytes = PlanPairBytes(serving_type, count) + 2 * 4 * count * kernel.degree;
  // Vectors double their capacity when they grow.
  cost.build_bytes = 3 * (8 * count + 4 * count * kernel.degree) + cost.kept_bytes;
  return cost;
}

}  // namespace phimap
