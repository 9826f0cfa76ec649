// Answers to questions asked before a build: EstimateBuild estimates what it costs on this machine,
// and Advise runs the advisor.
#ifndef PHIMAP_SERVER_MAPPING_FORECASTS_H_
#define PHIMAP_SERVER_MAPPING_FORECASTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/spec/build_spec.h"
#include "core/thread/mutex.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_manager.h"

namespace phimap {

struct BuildEstimate {
  BuildCost cost;
  // CPU time of one thread.
  double seconds = 0;
};

// Estimates the cost of builds on this machine, which it measures once, at the first estimate.
// Thread-safe.
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

// Answers EstimateBuild; `builds` supplies the memory limit of all builds together. Returns the
// errors of BuildManager::CheckKernel and BuildSpecFromProto, INVALID_ARGUMENT for rows or columns
// out of range, and FAILED_PRECONDITION (ROWS_TOO_FEW, DIMENSIONS_TOO_MANY) as the build itself
// would. Takes as long as BuildEstimator, so must not run on an RPC thread.
absl::Status EstimateFromProto(const v1::EstimateBuildRequest& request, BuildEstimator& estimator,
                               const BuildManager& builds, v1::EstimateBuildResponse* response);

// Answers Advise. Returns the errors of phimap::Advise. Takes up to 0.2 s, so must not run on
// an RPC thread.
absl::Status AdviseFromProto(const v1::AdviseRequest& request, v1::AdviseResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_FORECASTS_H_
