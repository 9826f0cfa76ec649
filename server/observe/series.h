// What makes series of metrics: the buckets of durations, and families of one series.
#ifndef PHIMAP_SERVER_OBSERVE_SERIES_H_
#define PHIMAP_SERVER_OBSERVE_SERIES_H_

#include <vector>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace phimap {

// For calls and their phases: bounds in seconds, from 25 µs (half the time of an empty call) to 10
// s.
const std::vector<double>& LatencyBuckets();

// For long computations and waits for a disk: bounds in seconds, from 1 ms to half an hour.
const std::vector<double>& LongLatencyBuckets();

// Families of metrics that have one series and no labels.

// The results live as long as `registry`.
inline prometheus::Counter* OneCounter(prometheus::Registry& registry, const char* name,
                                       const char* help) {
  return &prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

inline prometheus::Gauge* OneGauge(prometheus::Registry& registry, const char* name,
                                   const char* help) {
  return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

inline prometheus::Histogram* OneHistogram(prometheus::Registry& registry, const char* name,
                                           const char* help, const std::vector<double>& buckets) {
  return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_SERIES_H_
