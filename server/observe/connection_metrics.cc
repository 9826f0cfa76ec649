#include "server/observe/connection_metrics.h"

#include "server/observe/single_series.h"

namespace phimap {

ConnectionMetrics::ConnectionMetrics(prometheus::Registry& registry)
    : accepted(OneCounter(registry, "phimap_connections_accepted_total",
                          "Connections to the API that were taken.")),
      refused(OneCounter(registry, "phimap_connections_refused_total",
                         "Connections to the API that were closed at once: too many are open.")),
      refused_by_address(OneCounter(
          registry, "phimap_connections_refused_by_address_total",
          "Connections to the API that were closed at once: their address has too many.")),
      open(OneGauge(registry, "phimap_connections_open", "Connections to the API.")),
      longest_gap_seconds(OneGauge(
          registry, "phimap_loop_longest_gap_seconds",
          "The longest time between two polls of an event loop in the last 15 to 30 seconds: for "
          "so long nobody's requests were read.")) {}

}  // namespace phimap
