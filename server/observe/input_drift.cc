#include "server/observe/input_drift.h"

#include <cmath>

#include "core/plan/rows.h"

namespace phimap {

void InputDrift::Add(const ExamplesView& row, const RowsView& features,
                     const Residual* residual) const {
  const void* const numbers = features.Row(0);
  const double norm = features.type == FloatType::kFloat32
                          ? SquaredNorm(static_cast<const float*>(numbers), features.columns)
                          : SquaredNorm(static_cast<const double*>(numbers), features.columns);
  double rho = 0;
  if (residual != nullptr) residual->Compute(row, numbers, &rho, /*allowances=*/nullptr);
  if (!std::isfinite(norm) || !std::isfinite(rho)) return counters_.rows_not_finite->Increment();
  counters_.rows->Increment();
  counters_.norm_sum->Increment(norm);
  counters_.residual_sum->Increment(rho);
}

}  // namespace phimap
