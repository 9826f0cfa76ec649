#include "server/observe/registry_metrics.h"

#include "server/observe/latency_buckets.h"
#include "server/observe/single_series.h"

namespace phimap {
namespace {

// The families of one name are one.
prometheus::Gauge* AliasVersions(prometheus::Registry& registry, const char* state) {
  return &prometheus::BuildGauge()
              .Name("phimap_alias_versions")
              .Help("Versions that aliases name, by state: warm, loading, failed.")
              .Register(registry)
              .Add({{"state", state}});
}

}  // namespace

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
      alias_versions_warm(AliasVersions(registry, "warm")),
      alias_versions_loading(AliasVersions(registry, "loading")),
      alias_versions_failed(AliasVersions(registry, "failed")),
      catalog_errors(OneCounter(registry, "phimap_catalog_errors_total",
                                "Times that the database did not say what other servers "
                                "changed.")),
      versions(std::make_unique<VersionSeries>(registry)) {}

}  // namespace phimap
