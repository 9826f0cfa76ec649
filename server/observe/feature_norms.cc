#include "server/observe/feature_norms.h"

#include "core/plan/squared_norm.h"

namespace phimap {

void FeatureNorms::Sample(const void* features, FloatType type, int64_t columns) const {
  if (requests_.fetch_add(1, std::memory_order_relaxed) % kEvery != 0) return;
  rows_->Increment();
  sum_->Increment(type == FloatType::kFloat32
                      ? SquaredNorm(static_cast<const float*>(features), columns)
                      : SquaredNorm(static_cast<const double*>(features), columns));
}

}  // namespace phimap
