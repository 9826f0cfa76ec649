#include "server/observe/connection_metrics.h"

#include "server/observe/single_series.h"

namespace phimap {

ConnectionMetrics::ConnectionMetrics(prometheus::Registry& registry)
    : accepted(OneCounter(registry, "phimap_connections_accepted_total",
                          "Connections to the API that were taken.")),
      refused(OneCounter(
          registry, "phimap_connections_refused_total",
          "Connections to the API that were closed at once: too many files are open.")) {}

}  // namespace phimap
