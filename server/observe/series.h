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
inline const std::vector<double>& LatencyBuckets() {
  static const std::vector<double>* const buckets = new std::vector<double>{
      25e-6, 50e-6, 75e-6, 100e-6, 150e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3,
      10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1,      2.5,  5,      10};
  return *buckets;
}

// For long computations and waits for a disk: bounds in seconds, from 1 ms to half an hour.
inline const std::vector<double>& LongLatencyBuckets() {
  static const std::vector<double>* const buckets = new std::vector<double>{
      1e-3, 5e-3, 25e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60, 300, 1800};
  return *buckets;
}

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
