#include "server/trace/span_exporter.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/thread/start_thread.h"

namespace phimap {
namespace {

// About as much as the span takes of memory. protobuf's own SpaceUsedLong takes a third of the time
// of all that is done for a span.
int64_t MemoryOf(const opentelemetry::Span& span) {
  constexpr size_t kOfAttribute =
      sizeof(opentelemetry::KeyValue) + sizeof(opentelemetry::AnyValue) + 2 * sizeof(std::string);
  constexpr size_t kTexts = 5;  // a span's own: three ids, its name and its status
  return static_cast<int64_t>(sizeof(span) + kTexts * sizeof(std::string) +
                              kOfAttribute * static_cast<size_t>(span.attributes_size()) +
                              span.ByteSizeLong());
}

}  // namespace

SpanExporter::SpanExporter(std::unique_ptr<CollectorClient> client,
                           opentelemetry::Resource resource,
                           opentelemetry::InstrumentationScope scope, const Options& options,
                           const TraceMetrics& metrics, const Logger& logger)
    : client_(std::move(client)), options_(options), metrics_(metrics), logger_(logger) {
  opentelemetry::ResourceSpans& described = *request_.add_resource_spans();
  *described.mutable_resource() = std::move(resource);
  *described.add_scope_spans()->mutable_scope() = std::move(scope);
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = StartThread("traces", [this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SpanExporter::~SpanExporter() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    end_by_ = Clock::now() + options_.end_wait;
    changed_.NotifyAll();
  }
  client_->Wake();
  thread_.join();
}

void SpanExporter::Add(opentelemetry::Span span) {
  const int64_t bytes = MemoryOf(span);
  MutexLock lock(&mutex_);
  if (ending_ || queued_bytes_ + bytes > options_.max_queued_bytes) {
    metrics_.dropped_queue_full->Increment();
    return;
  }
  if (queue_.empty()) waits_since_ = Clock::now();
  queue_.push_back({std::move(span), bytes});
  queued_bytes_ += bytes;
  // The thread is woken to wait for the rest of a batch, and when the batch is complete.
  if (queue_.size() == 1 || queue_.size() == options_.max_batch_spans) changed_.NotifyAll();
}

void SpanExporter::DropWithoutMemory() { metrics_.dropped_no_memory->Increment(); }

void SpanExporter::Run() {
  while (true) {
    size_t spans = 0;
    try {
      Spans batch = Take();
      if (batch.empty()) return;
      spans = batch.size();
      Deliver(std::move(batch));
    } catch (const std::bad_alloc&) {
      metrics_.dropped_no_memory->Increment(static_cast<double>(spans));
      PauseUntil(Clock::now() + options_.first_retry);
    }
  }
}

SpanExporter::Spans SpanExporter::Take() {
  MutexLock lock(&mutex_);
  while (!ending_ && queue_.size() < options_.max_batch_spans) {
    if (queue_.empty()) {
      changed_.Wait(&mutex_);
    } else if (!changed_.WaitUntil(&mutex_, waits_since_ + options_.batch_delay)) {
      break;
    }
  }
  Spans batch;
  batch.reserve(std::min(queue_.size(), options_.max_batch_spans));
  while (batch.size() < batch.capacity() && !queue_.empty()) {
    batch.push_back(std::move(queue_.front().span));
    queued_bytes_ -= queue_.front().bytes;
    queue_.pop_front();
  }
  return batch;
}

void SpanExporter::Deliver(Spans spans) {
  const auto count = static_cast<double>(spans.size());
  auto& sent = *request_.mutable_resource_spans(0)->mutable_scope_spans(0)->mutable_spans();
  sent.Assign(std::make_move_iterator(spans.begin()), std::make_move_iterator(spans.end()));
  const std::string request = request_.SerializeAsString();
  sent.Clear();
  const Clock::time_point give_up = Clock::now() + options_.give_up;
  std::chrono::milliseconds pause = options_.first_retry;
  while (true) {
    const Clock::time_point due = Clock::now() + options_.answer_wait;
    const CollectorAnswer answer = client_->Post(request, [&] { return GiveUpAt(due); });
    LogState(answer);
    switch (answer.kind) {
      case CollectorAnswer::Kind::kTaken: {
        const double rejected = std::min(static_cast<double>(answer.rejected), count);
        metrics_.sent->Increment(count - rejected);
        metrics_.dropped_rejected->Increment(rejected);
        return;
      }
      case CollectorAnswer::Kind::kRefused:
        metrics_.dropped_rejected->Increment(count);
        return;
      case CollectorAnswer::Kind::kTryLater:
        break;
    }
    metrics_.failures->Increment();
    const Clock::time_point next =
        Clock::now() + std::max<Clock::duration>(pause, answer.retry_after);
    if (ending() || next > give_up) {
      metrics_.dropped_undelivered->Increment(count);
      return;
    }
    PauseUntil(next);
    pause = std::min(2 * pause, options_.longest_retry);
  }
}

SpanExporter::Clock::time_point SpanExporter::GiveUpAt(Clock::time_point due) {
  MutexLock lock(&mutex_);
  return ending_ ? std::min(due, end_by_) : due;
}

void SpanExporter::PauseUntil(Clock::time_point time) {
  MutexLock lock(&mutex_);
  while (!ending_ && changed_.WaitUntil(&mutex_, time)) {
  }
}

bool SpanExporter::ending() {
  MutexLock lock(&mutex_);
  return ending_;
}

void SpanExporter::LogState(const CollectorAnswer& answer) {
  const bool fails = answer.kind == CollectorAnswer::Kind::kTryLater;
  if (fails && !failing_) {
    logger_.Log(LogLevel::kWarning, "trace_collector_failing", {{"error", answer.error}});
  } else if (!fails && failing_) {
    logger_.Log(LogLevel::kInfo, "trace_collector_answers", {});
  }
  failing_ = fails;
  const bool refused = answer.kind == CollectorAnswer::Kind::kRefused || answer.rejected > 0;
  if (refused && refusals_.Now()) {
    logger_.Log(
        LogLevel::kWarning, "trace_spans_refused",
        {{"rejected", answer.rejected > 0 ? std::optional<int64_t>(answer.rejected) : std::nullopt},
         {"error", answer.error}});
  }
}

}  // namespace phimap
