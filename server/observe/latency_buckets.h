// The bounds of the histograms of durations.
#ifndef PHIMAP_SERVER_OBSERVE_LATENCY_BUCKETS_H_
#define PHIMAP_SERVER_OBSERVE_LATENCY_BUCKETS_H_

#include <vector>

namespace phimap {

// Seconds from 25 µs, half the time of an empty call, to 10 s: for calls and their phases.
const std::vector<double>& LatencyBuckets();

// Seconds from 1 ms to half an hour: for long computations and waits for a disk.
const std::vector<double>& LongLatencyBuckets();

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LATENCY_BUCKETS_H_
