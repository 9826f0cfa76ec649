// The way of ended spans to the collector: a queue of bounded size, and a thread that sends it in
// batches.
#ifndef PHIMAP_SERVER_TRACE_SPAN_EXPORTER_H_
#define PHIMAP_SERVER_TRACE_SPAN_EXPORTER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "core/thread/mutex.h"
#include "opentelemetry/trace.pb.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/trace/collector_client.h"

namespace phimap {

// Guarantees: Add never waits for the collector, only for a lock that is held for microseconds.
// Spans that are not sent yet take at most `max_queued_bytes`, and one batch; further ones are
// dropped and counted. A batch is sent again while the collector is away, for at most `give_up`, at
// intervals that grow; then it is dropped and counted. The destructor sends what waits, for at most
// `end_wait`. The log says when the collector begins to fail and when it answers again.
// Thread-safe.
class SpanExporter {
 public:
  using Clock = CollectorClient::Clock;
  struct Options {
    // Memory of the spans in the queue.
    int64_t max_queued_bytes = int64_t{4} << 20;
    // A batch is sent when this many spans wait, or the first has waited for `batch_delay`.
    size_t max_batch_spans = 512;
    std::chrono::milliseconds batch_delay{1000};
    // Maximum time for one request to the collector.
    std::chrono::milliseconds answer_wait{10000};
    // Time after which a batch is sent again, doubled each time up to the second.
    std::chrono::milliseconds first_retry{1000};
    std::chrono::milliseconds longest_retry{16000};
    std::chrono::milliseconds give_up{60000};
    std::chrono::milliseconds end_wait{1000};
  };

  // `resource` describes this process. `metrics` and `logger` must outlive this object.
  SpanExporter(std::unique_ptr<CollectorClient> client, opentelemetry::Resource resource,
               opentelemetry::InstrumentationScope scope, const Options& options,
               const TraceMetrics& metrics, const Logger& logger);
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Takes a span that has ended. May throw std::bad_alloc; the span is then gone.
  void Add(opentelemetry::Span span) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a span for which there was no memory.
  void DropWithoutMemory();

 private:
  using Spans = std::vector<opentelemetry::Span>;
  struct Queued {
    opentelemetry::Span span;
    int64_t bytes;
  };

  void Run();
  // Waits for a batch. Returns an empty one at the end.
  Spans Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the spans until the collector takes or refuses them, or they are given up.
  void Deliver(Spans spans) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when to stop waiting for an answer that is due at `due`.
  Clock::time_point GiveUpAt(Clock::time_point due) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until `time`. Returns at once if the exporter is ending.
  void PauseUntil(Clock::time_point time) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ending() ABSL_LOCKS_EXCLUDED(mutex_);
  void LogState(const CollectorAnswer& answer);

  const std::unique_ptr<CollectorClient> client_;
  const Options options_;
  const TraceMetrics& metrics_;
  const Logger& logger_;
  // Everything of a request but its spans.
  opentelemetry::ExportTraceServiceRequest request_;
  // Whether the last request failed. Used only by the thread.
  bool failing_ = false;
  Seldom refusals_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // When the first span of the queue was added.
  Clock::time_point waits_since_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point end_by_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRACE_SPAN_EXPORTER_H_
