// Estimates the cost of a build on this machine.
#ifndef PHIMAP_SERVER_MAPPING_BUILD_ESTIMATOR_H_
#define PHIMAP_SERVER_MAPPING_BUILD_ESTIMATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/mapping/build/build_cost.h"
#include "core/mapping/build/build_speed.h"
#include "core/mapping/spec/build_spec.h"
#include "server/sync/mutex.h"

namespace phimap {

struct BuildEstimate {
  BuildCost cost;
  // CPU time of one thread.
  double seconds = 0;
};

// Measures the machine once, when it is first asked. Thread-safe.
class BuildEstimator {
 public:
  // `threads`: the maximum of a build, each with its own memory.
  explicit BuildEstimator(std::function<BuildSpeed()> measure = MeasureBuildSpeed, int threads = 1)
      : measure_(std::move(measure)), threads_(threads) {}

  int threads() const { return threads_; }

  // REQUIRES: as CostOfBuild. Blocking for about 25 ms the first time, microseconds afterwards; not
  // on an RPC thread.
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
