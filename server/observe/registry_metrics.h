// Metrics of the versions in memory. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_REGISTRY_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_REGISTRY_METRICS_H_

#include <memory>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/observe/version_series.h"

namespace phimap {

class RegistryMetrics {
 public:
  explicit RegistryMetrics(prometheus::Registry& registry);
  RegistryMetrics(const RegistryMetrics&) = delete;
  RegistryMetrics& operator=(const RegistryMetrics&) = delete;

  prometheus::Gauge* const live_versions;
  prometheus::Gauge* const live_bytes;
  prometheus::Counter* const loads;
  prometheus::Counter* const load_errors;
  prometheus::Histogram* const load_seconds;
  // Number of loads that wait for the loader thread.
  prometheus::Gauge* const loads_waiting;
  prometheus::Counter* const evictions;
  // Number of versions that aliases point to, by state: in memory, waiting to be loaded in the
  // background, and neither of the two.
  prometheus::Gauge* const alias_versions_warm;
  prometheus::Gauge* const alias_versions_loading;
  prometheus::Gauge* const alias_versions_failed;
  // Number of failed requests to the catalog for other servers' changes.
  prometheus::Counter* const catalog_errors;
  const std::unique_ptr<VersionSeries> versions;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_REGISTRY_METRICS_H_
