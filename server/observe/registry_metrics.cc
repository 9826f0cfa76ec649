#include "server/observe/registry_metrics.h"

#include "server/observe/latency_buckets.h"
#include "server/observe/single_series.h"

namespace phimap {
namespace {

// All calls return series of one family, because they register it under the same name.
prometheus::Gauge* AliasVersions(prometheus::Registry& registry, const char* state) {
  return &prometheus::BuildGauge()
              .Name("phimap_alias_versions")
              .Help("Versions that aliases point to, by state: warm, loading, failed.")
              .Register(registry)
              .Add({{"state", state}});
}

}  // namespace

RegistryMetrics::RegistryMetrics(prometheus::Registry& registry)
    : live_versions(OneGauge(registry, "phimap_live_versions",
                             "Versions that are loaded and ready to serve.")),
      live_bytes(OneGauge(registry, "phimap_live_version_bytes", "Memory of loaded versions.")),
      loads(OneCounter(registry, "phimap_version_loads_total", "Versions loaded from the store.")),
      load_errors(OneCounter(registry, "phimap_version_load_errors_total",
                             "Existing versions that could not be loaded.")),
      load_seconds(OneHistogram(registry, "phimap_version_load_seconds",
                                "Time to load a version in seconds: read, check, decode, pack.",
                                LongLatencyBuckets())),
      loads_waiting(
          OneGauge(registry, "phimap_version_loads_waiting", "Versions waiting to be loaded.")),
      evictions(OneCounter(registry, "phimap_version_evictions_total",
                           "Loaded versions that were unloaded to free memory.")),
      alias_versions_warm(AliasVersions(registry, "warm")),
      alias_versions_loading(AliasVersions(registry, "loading")),
      alias_versions_failed(AliasVersions(registry, "failed")),
      catalog_errors(OneCounter(registry, "phimap_catalog_errors_total",
                                "Failed requests to the database for other servers' changes.")),
      versions(std::make_unique<VersionSeries>(registry)) {}

}  // namespace phimap
