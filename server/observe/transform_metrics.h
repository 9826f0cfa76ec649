// Counts of requests for features, for all protocols.
//
// A request passes through four phases:
//   parse    from when the message is complete to when the scheduler has the work. Includes the
//            checks, the lookup of the reference, and the load of a version that is not live.
//   queue    the wait for a thread
//   compute  the computation of the features
//   answer   from the allocation of the answer, just before the features are computed, until the
//            answer is sent
// Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_TRANSFORM_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_TRANSFORM_METRICS_H_

#include <array>
#include <cstdint>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace phimap {

// Reason for which accepted work was not computed.
enum class Drop { kDeadline, kCancelled };
inline constexpr int kDrops = 2;

class TransformMetrics {
 public:
  explicit TransformMetrics(prometheus::Registry& registry);
  TransformMetrics(const TransformMetrics&) = delete;
  TransformMetrics& operator=(const TransformMetrics&) = delete;

  // Records a batch of the engine: `requests` requests that have `rows` rows together.
  void BatchComputed(int64_t requests, int64_t rows) const;
  // Records one request of the batch, which got its features.
  void RequestComputed(int64_t rows, double batch_seconds) const;

  prometheus::Counter* const rows;
  prometheus::Histogram* const batch_rows;
  prometheus::Histogram* const batch_requests;
  prometheus::Histogram* const parse_seconds;
  prometheus::Histogram* const queue_seconds;
  prometheus::Histogram* const compute_seconds;
  prometheus::Histogram* const answer_seconds;
  // Bytes that are charged for requests and answers, from before they arrive until they are sent.
  prometheus::Gauge* const memory_bytes;
  // Requests that were computed on the event loop that read them.
  prometheus::Counter* const inline_requests;
  prometheus::Counter* const pool_busy_seconds;
  // Indexed by Drop.
  const std::array<prometheus::Counter*, kDrops> dropped;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_TRANSFORM_METRICS_H_
