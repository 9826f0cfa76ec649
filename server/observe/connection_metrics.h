// Counts the connections of the API.
#ifndef PHIMAP_SERVER_OBSERVE_CONNECTION_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_CONNECTION_METRICS_H_

#include "prometheus/counter.h"
#include "prometheus/registry.h"

namespace phimap {

struct ConnectionMetrics {
  // The counters live as long as `registry`.
  explicit ConnectionMetrics(prometheus::Registry& registry);

  prometheus::Counter* const accepted;
  // Closed at once, because the process has too many files open.
  prometheus::Counter* const refused;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_CONNECTION_METRICS_H_
