// Metrics of builds. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_BUILD_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_BUILD_METRICS_H_

#include <array>

#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/observe/rpc_metrics.h"

namespace phimap {

inline constexpr int kBuildStates = 7;
inline constexpr int kBuildPhases = 11;

class BuildMetrics {
 public:
  explicit BuildMetrics(prometheus::Registry& registry);
  BuildMetrics(const BuildMetrics&) = delete;
  BuildMetrics& operator=(const BuildMetrics&) = delete;

  // Records that a build spent `seconds` in `phase`. A phase is "receive", "queue", "publish", or
  // one of the phases that BuildVersion (core/mapping/build/version_build.h) reports. Ignores any
  // other phase.
  void PhaseEnded(absl::string_view phase, double seconds) const;
  // For tests. Returns null for a phase that is not counted.
  prometheus::Histogram* PhaseSeconds(absl::string_view phase) const;

  // Number of builds in each state, indexed by BuildState. The last three states count only builds
  // that are still in memory.
  const std::array<prometheus::Gauge*, kBuildStates> in_state;
  // Number of builds that ended, by their canonical status code.
  const std::array<prometheus::Counter*, kStatusCodes> ended;
  prometheus::Counter* const rows;
  // Seconds from the start of computing to the stored version.
  prometheus::Histogram* const seconds;
  prometheus::Gauge* const memory_bytes;

 private:
  const std::array<prometheus::Histogram*, kBuildPhases> phase_seconds_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_BUILD_METRICS_H_
