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
                         "Accepted requests that were not computed completely, because their "
                         "deadline passed or their client cancelled them.")
                     .Register(registry);
  return {&family.Add({{"reason", "deadline"}}), &family.Add({{"reason", "cancelled"}})};
}

}  // namespace

TransformMetrics::TransformMetrics(prometheus::Registry& registry)
    : rows(OneCounter(registry, "phimap_transform_rows_total", "Rows mapped.")),
      batch_rows(OneHistogram(registry, "phimap_transform_batch_rows", "Rows per batch.",
                              {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536})),
      batch_requests(OneHistogram(registry, "phimap_transform_batch_requests",
                                  "Requests per batch.", {1, 2, 4, 8, 16, 32, 64})),
      parse_seconds(OneHistogram(registry, "phimap_transform_parse_seconds",
                                 "Seconds from reading a request to queueing it: checks, and "
                                 "loading its version if necessary.",
                                 LatencyBuckets())),
      queue_seconds(OneHistogram(registry, "phimap_transform_queue_seconds",
                                 "Seconds that a request waited for a worker.", LatencyBuckets())),
      compute_seconds(
          OneHistogram(registry, "phimap_transform_compute_seconds",
                       "Seconds that the batch of a request was computed. Each request counts the "
                       "whole time of its batch, so the sum exceeds the computing time.",
                       LatencyBuckets())),
      answer_seconds(OneHistogram(registry, "phimap_transform_answer_seconds",
                                  "Seconds from just before a request's features are computed "
                                  "until they are sent or dropped.",
                                  LatencyBuckets())),
      memory_bytes(OneGauge(
          registry, "phimap_request_memory_bytes",
          "Memory of requests and answers in bytes, from before they arrive until they are sent.")),
      inline_requests(OneCounter(registry, "phimap_transform_inline_total",
                                 "Requests that were computed on their event loop, without a "
                                 "thread of the compute pool.")),
      pool_busy_seconds(
          OneCounter(registry, "phimap_compute_pool_busy_seconds_total",
                     "Seconds that threads of the compute pool were busy; its rate divided by "
                     "phimap_compute_threads is the busy share of the pool.")),
      dropped(DropCounters(registry)) {}

void TransformMetrics::BatchComputed(int64_t requests, int64_t rows) const {
  batch_requests->Observe(static_cast<double>(requests));
  batch_rows->Observe(static_cast<double>(rows));
}

void TransformMetrics::RequestComputed(int64_t request_rows, double batch_seconds) const {
  rows->Increment(static_cast<double>(request_rows));
  compute_seconds->Observe(batch_seconds);
}

}  // namespace phimap
