#include "server/mapping/build_estimator.h"

namespace phimap {

BuildSpeed BuildEstimator::Speed() {
  // Callers wait while the speed is measured: two measurements at once would slow each other.
  MutexLock lock(&mutex_);
  if (!speed_.has_value()) speed_ = measure_();
  return *speed_;
}

BuildEstimate BuildEstimator::Estimate(const BuildSpec& spec, int64_t rows, int64_t columns) {
  const BuildCost cost = CostOfBuild(spec, rows, columns, threads_);
  return {.cost = cost, .seconds = SecondsOf(cost.work, Speed())};
}

}  // namespace phimap
