// Metrics of the log lines that were dropped.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_LOG_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/observe/log.h"

namespace phimap {

// Reads the counts from `logger` at each scrape. `logger` must outlive this object.
class LogMetrics final : public prometheus::Collectable {
 public:
  explicit LogMetrics(const Logger& logger) : logger_(logger) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Logger& logger_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_METRICS_H_
