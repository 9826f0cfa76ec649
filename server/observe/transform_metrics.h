// Metrics of requests for features, for all protocols.
//
// A request passes through four phases: parse, from its complete message until the scheduler has
// the work (checks, resolving the reference, and loading a version that is not live); queue;
// compute; and answer, from its features until they are sent. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_TRANSFORM_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_TRANSFORM_METRICS_H_

#include <array>
#include <cstdint>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace phimap {

// Why accepted work was not computed.
enum class Drop { kDeadline, kCancelled };
inline constexpr int kDrops = 2;

class TransformMetrics {
 public:
  explicit TransformMetrics(prometheus::Registry& registry);
  TransformMetrics(const TransformMetrics&) = delete;
  TransformMetrics& operator=(const TransformMetrics&) = delete;

  // Records a batch of the engine: `requests` requests with `rows` rows in total.
  void PassComputed(int64_t requests, int64_t rows) const;
  // Records one request of a batch that got its features.
  void RequestComputed(int64_t rows, double pass_seconds) const;

  prometheus::Counter* const rows;
  prometheus::Histogram* const batch_rows;
  prometheus::Histogram* const batch_requests;
  prometheus::Histogram* const parse_seconds;
  prometheus::Histogram* const queue_seconds;
  prometheus::Histogram* const compute_seconds;
  prometheus::Histogram* const answer_seconds;
  // Bytes charged for requests and answers, from before they arrive until they are sent.
  prometheus::Gauge* const memory_bytes;
  // Number of requests computed on the event loop that received them.
  prometheus::Counter* const inline_requests;
  prometheus::Counter* const pool_busy_seconds;
  // Indexed by Drop.
  const std::array<prometheus::Counter*, kDrops> dropped;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_TRANSFORM_METRICS_H_
