#include "server/observe/registry_metrics.h"

#include "server/observe/latency_buckets.h"
#include "server/observe/single_series.h"

namespace phimap {

RegistryMetrics::RegistryMetrics(prometheus::Registry& registry)
    : live_versions(OneGauge(registry, "phimap_live_versions",
                             "Versions that are loaded and ready to serve.")),
      live_bytes(
          OneGauge(registry, "phimap_live_version_bytes", "Memory that loaded versions take.")),
      loads(OneCounter(registry, "phimap_version_loads_total", "Versions loaded from the store.")),
      load_errors(OneCounter(registry, "phimap_version_load_errors_total",
                             "Versions that exist and could not be loaded.")),
      load_seconds(OneHistogram(registry, "phimap_version_load_seconds",
                                "Seconds it took to load a version: read, check, decode, pack.",
                                LongLatencyBuckets())),
      loads_waiting(
          OneGauge(registry, "phimap_version_loads_waiting", "Versions that wait to be loaded.")),
      evictions(OneCounter(registry, "phimap_version_evictions_total",
                           "Loaded versions dropped to make room.")),
      versions(std::make_unique<VersionSeries>(registry)) {}

}  // namespace phimap
