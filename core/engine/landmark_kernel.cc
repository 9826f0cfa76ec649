#include "core/engine/landmark_kernel.h"

#include <algorithm>

#include "core/kernel/kernel_evaluator.h"

namespace phimap {

template <typename T>
void LandmarkKernel<T>::TakeSelfValues(SelfValues<T> self) {
  self_ = std::move(self);
  EvaluateFactors(program_, norms_.data(), self_.pair_values(), landmarks_, self_.factors());
}

template <typename T>
void LandmarkKernel<T>::Evaluate(const Operands& operands, T* const* z, Memory& memory) const {
  const int64_t pair_values = static_cast<int64_t>(program_.form_count());
  const int64_t factors = static_cast<int64_t>(program_.factors().size());
  if (factors > 0) {
    EvaluateFactors(program_, operands.norms, operands.self->pair_values(), operands.rows,
                    operands.self->factors());
  }
  memory.pair_values.resize(pair_values);
  memory.factors.resize(factors);
  KernelOperands<T> row{.offsets = offsets(),
                        .forms = memory.pair_values.data(),
                        .x_factors = memory.factors.data(),
                        .row_factors = self_.factors()};
  if (program_.uses_norms()) row.row_norms = norms_.data();
  for (int64_t i = 0; i < operands.rows; ++i) {
    if (operands.products != nullptr) row.products = operands.products[i];
    if (operands.l1_distances != nullptr) row.l1_distances = operands.l1_distances[i];
    if (program_.uses_norms()) row.x_norm = operands.norms[i];
    for (int64_t m = 0; m < pair_values; ++m) {
      memory.pair_values[m] = operands.pair_values[m * operands.rows + i];
    }
    for (int64_t m = 0; m < factors; ++m) memory.factors[m] = operands.self->factors()[m][i];
    EvaluateKernel(program_, row, landmarks_, z[i]);
  }
}

template <typename T>
const char* LandmarkKernel<T>::overflow_cause() const {
  const auto& sums = program_.sums();
  const bool needs_nonnegative = std::any_of(sums.begin(), sums.end(), [](const ColumnSum& sum) {
    return sum.term == ColumnTerm::kHarmonicMean || sum.term == ColumnTerm::kChiSquare ||
           sum.term == ColumnTerm::kMinimum;
  });
  if (needs_nonnegative) return ", or a number is negative and the kernel takes numbers >= 0";
  return program_.factors().empty() ? ""
                                    : ", or K(x, x), by which the kernel divides, is not positive";
}

template class LandmarkKernel<float>;
template class LandmarkKernel<double>;

}  // namespace phimap
