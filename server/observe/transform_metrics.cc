#include "server/observe/transform_metrics.h"

#include "prometheus/family.h"
#include "server/observe/latency_buckets.h"
#include "server/observe/single_series.h"

namespace phimap {
namespace {

std::array<prometheus::Counter*, kDrops> DropCounters(prometheus::Registry& registry) {
  auto& family = prometheus::BuildCounter()
                     .Name("phimap_transform_dropped_total")
                     .Help(
                         "Accepted requests that were not computed, or not to the end, because "
                         "their deadline passed or their client gave them up.")
                     .Register(registry);
  return {&family.Add({{"reason", "deadline"}}), &family.Add({{"reason", "cancelled"}})};
}

}  // namespace

TransformMetrics::TransformMetrics(prometheus::Registry& registry)
    : rows(OneCounter(registry, "phimap_transform_rows_total", "Rows mapped.")),
      batch_rows(OneHistogram(registry, "phimap_transform_batch_rows",
                              "Rows that were computed in one pass.",
                              {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536})),
      batch_requests(OneHistogram(registry, "phimap_transform_batch_requests",
                                  "Requests that were computed in one pass.",
                                  {1, 2, 4, 8, 16, 32, 64})),
      parse_seconds(OneHistogram(
          registry, "phimap_transform_parse_seconds",
          "Seconds from when a request was read to when it was queued: checks, and the load of its "
          "version if that was not live.",
          LatencyBuckets())),
      queue_seconds(OneHistogram(registry, "phimap_transform_queue_seconds",
                                 "Seconds a request waited for a worker.", LatencyBuckets())),
      compute_seconds(OneHistogram(
          registry, "phimap_transform_compute_seconds",
          "Seconds of the pass that computed a request. The time of a pass is given to each "
          "request of it, so the sum is more than the time that was computed.",
          LatencyBuckets())),
      answer_seconds(OneHistogram(
          registry, "phimap_transform_answer_seconds",
          "Seconds from when a request's features were computed to when they were sent, or given "
          "up.",
          LatencyBuckets())),
      memory_bytes(OneGauge(registry, "phimap_request_memory_bytes",
                            "Bytes of requests and answers, from before they arrive until they "
                            "are sent.")),
      inline_requests(OneCounter(registry, "phimap_transform_inline_total",
                                 "Requests that were computed where they arrived, without a "
                                 "thread of the compute pool.")),
      pool_busy_seconds(
          OneCounter(registry, "phimap_compute_pool_busy_seconds_total",
                     "Seconds that threads of the compute pool were busy; its rate over "
                     "phimap_compute_threads is the busy share of the pool.")),
      dropped(DropCounters(registry)) {}

void TransformMetrics::PassComputed(int64_t requests, int64_t pass_rows) const {
  batch_requests->Observe(static_cast<double>(requests));
  batch_rows->Observe(static_cast<double>(pass_rows));
}

void TransformMetrics::RequestComputed(int64_t request_rows, double pass_seconds) const {
  rows->Increment(static_cast<double>(request_rows));
  compute_seconds->Observe(pass_seconds);
}

}  // namespace phimap
