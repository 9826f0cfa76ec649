// Bucket bounds of the histograms of durations.
#ifndef PHIMAP_SERVER_OBSERVE_LATENCY_BUCKETS_H_
#define PHIMAP_SERVER_OBSERVE_LATENCY_BUCKETS_H_

#include <vector>

namespace phimap {

// For calls and their phases: bounds in seconds, from 25 µs (half the time of an empty call) to 10
// s.
const std::vector<double>& LatencyBuckets();

// For long computations and waits for a disk: bounds in seconds, from 1 ms to half an hour.
const std::vector<double>& LongLatencyBuckets();

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LATENCY_BUCKETS_H_
