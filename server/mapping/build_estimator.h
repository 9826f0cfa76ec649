// Estimates the cost of builds on this machine.
#ifndef PHIMAP_SERVER_MAPPING_BUILD_ESTIMATOR_H_
#define PHIMAP_SERVER_MAPPING_BUILD_ESTIMATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/mapping/build/build_cost.h"
#include "core/mapping/spec/build_spec.h"
#include "server/sync/mutex.h"

namespace phimap {

struct BuildEstimate {
  BuildCost cost;
  // CPU time of one thread.
  double seconds = 0;
};

// Measures the machine once, at the first estimate. Thread-safe.
class BuildEstimator {
 public:
  // `threads` is the maximum number of threads of a build. Each thread needs its own memory.
  explicit BuildEstimator(std::function<BuildSpeed()> measure = MeasureBuildSpeed, int threads = 1)
      : measure_(std::move(measure)), threads_(threads) {}

  int threads() const { return threads_; }

  // Estimates the cost of a build. REQUIRES: as for CostOfBuild. The first call blocks for about 25
  // ms, later ones take microseconds. Must not run on an RPC thread.
  BuildEstimate Estimate(const BuildSpec& spec, int64_t rows, int64_t columns)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  BuildSpeed Speed() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<BuildSpeed()> measure_;
  const int threads_;
  Mutex mutex_;
  std::optional<BuildSpeed> speed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_BUILD_ESTIMATOR_H_
