// Metrics of calls to kernel services. Thread-safe except for AddService, which is for startup.
#ifndef PHIMAP_SERVER_OBSERVE_KERNEL_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_KERNEL_METRICS_H_

#include <array>

#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/observe/rpc_metrics.h"

namespace phimap {

// Metrics of one service on the operator's list.
struct KernelServiceMetrics {
  // Number of completed calls by the status that the caller got.
  std::array<prometheus::Counter*, kStatusCodes> ended;
  prometheus::Histogram* seconds;
  prometheus::Gauge* under_way;
  prometheus::Counter* values;
  // Number of times that a block's columns were sent with their content.
  prometheus::Counter* examples_sent;
};

class KernelMetrics {
 public:
  explicit KernelMetrics(prometheus::Registry& registry);

  KernelServiceMetrics AddService(absl::string_view name);

 private:
  prometheus::Family<prometheus::Counter>& ended_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Gauge>& under_way_;
  prometheus::Family<prometheus::Counter>& values_;
  prometheus::Family<prometheus::Counter>& examples_sent_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_KERNEL_METRICS_H_
