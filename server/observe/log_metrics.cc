#include "server/observe/log_metrics.h"

#include <cstdint>

namespace phimap {

std::vector<prometheus::MetricFamily> LogMetrics::Collect() const {
  prometheus::MetricFamily family{"phimap_log_lines_dropped_total",
                                  "Log lines that were not written, by reason.",
                                  prometheus::MetricType::Counter,
                                  {}};
  const auto add = [&family](const char* reason, int64_t count) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    metric.label.push_back({"reason", reason});
    metric.counter.value = static_cast<double>(count);
  };
  const LogDrops drops = logger_.drops();
  add("queue_full", drops.queue_full);
  add("rate", drops.rate);
  add("write_failed", drops.write_failed);
  return {family};
}

}  // namespace phimap
