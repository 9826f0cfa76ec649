#include "server/trace/span_exporter.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/thread/mutex.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "tests/server/trace/collector.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using std::chrono::milliseconds;

// A span that takes about a kilobyte.
opentelemetry::Span SpanOf(int number) {
  opentelemetry::Span span;
  span.set_name(absl::StrCat(number));
  span.set_span_id(std::string(8, 'x'));
  opentelemetry::KeyValue& attribute = *span.add_attributes();
  attribute.set_key("text");
  attribute.mutable_value()->set_string_value(std::string(500, 'x'));
  return span;
}

class SpanExporterTest : public ::testing::Test {
 protected:
  SpanExporterTest() {
    // Nothing waits for its default, but for the end.
    options_.batch_delay = milliseconds(1);
    options_.first_retry = milliseconds(1);
    options_.longest_retry = milliseconds(10);
  }

  SpanExporter& Start(const std::string& url) {
    opentelemetry::Resource resource;
    resource.add_attributes()->set_key("of this process");
    opentelemetry::InstrumentationScope scope;
    scope.set_name("scope");
    return exporter_.emplace(*CollectorClient::Make(url, "test"), std::move(resource),
                             std::move(scope), options_, metrics_, logger_);
  }
  SpanExporter& Start() { return Start(collector_.url()); }

  // The URL of a collector that has gone.
  static std::string Gone() {
    const Collector gone;
    return gone.url();
  }
  static void Await(const prometheus::Counter& counter, double value) {
    while (counter.Value() < value) std::this_thread::yield();
  }
  double Dropped() const {
    return metrics_.dropped_queue_full->Value() + metrics_.dropped_undelivered->Value() +
           metrics_.dropped_rejected->Value() + metrics_.dropped_no_memory->Value();
  }
  std::string Log() {
    MutexLock lock(&mutex_);
    return log_;
  }

  Collector collector_;
  SpanExporter::Options options_;
  prometheus::Registry registry_;
  const TraceMetrics metrics_{registry_};
  Mutex mutex_;
  std::string log_ ABSL_GUARDED_BY(mutex_);
  const Logger logger_{LogLevel::kInfo, [this](absl::string_view line) {
                         MutexLock lock(&mutex_);
                         log_.append(line.data(), line.size());
                       }};
  std::optional<SpanExporter> exporter_;
};

TEST_F(SpanExporterTest, SpansArriveInTheirOrderWithTheProcessAndTheScope) {
  SpanExporter& exporter = Start();
  for (int i = 0; i < 1000; ++i) exporter.Add(SpanOf(i));
  const std::vector<opentelemetry::Span> spans = collector_.AwaitSpans(1000);
  ASSERT_EQ(spans.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(spans[static_cast<size_t>(i)].name(), absl::StrCat(i));
  for (const Collector::Request& request : collector_.AwaitRequests(2)) {
    ASSERT_EQ(request.body.resource_spans_size(), 1);
    const opentelemetry::ResourceSpans& described = request.body.resource_spans(0);
    EXPECT_EQ(described.resource().attributes(0).key(), "of this process");
    ASSERT_EQ(described.scope_spans_size(), 1);
    EXPECT_EQ(described.scope_spans(0).scope().name(), "scope");
    EXPECT_LE(described.scope_spans(0).spans_size(), 512);
  }
  Await(*metrics_.sent, 1000);
  EXPECT_EQ(Dropped(), 0);
  EXPECT_EQ(Log(), "");
}

TEST_F(SpanExporterTest, AFullBatchDoesNotWaitForTheDelay) {
  options_.batch_delay = std::chrono::hours(1);
  options_.max_batch_spans = 3;
  SpanExporter& exporter = Start();
  for (int i = 0; i < 3; ++i) exporter.Add(SpanOf(i));
  EXPECT_EQ(collector_.AwaitSpans(3).size(), 3u);
}

// While the collector answers nothing, one batch is under way and the queue fills. No Add waits:
// this test would otherwise never end, because the collector is released after the last.
TEST_F(SpanExporterTest, AHangingCollectorCostsABoundedQueueAndNoTime) {
  options_.max_queued_bytes = 64 << 10;
  options_.answer_wait = std::chrono::hours(1);
  collector_.Hold();
  SpanExporter& exporter = Start();
  exporter.Add(SpanOf(0));
  collector_.AwaitRequests(1);
  constexpr int kAdded = 10'000;
  for (int i = 1; i < kAdded; ++i) exporter.Add(SpanOf(i));
  // A span of SpanOf takes between 0.5 and 1 KiB.
  EXPECT_GE(metrics_.dropped_queue_full->Value(), kAdded - 129);
  EXPECT_LE(metrics_.dropped_queue_full->Value(), kAdded - 64);
  collector_.Release();
  Await(*metrics_.sent, kAdded - metrics_.dropped_queue_full->Value());
  EXPECT_EQ(metrics_.sent->Value() + Dropped(), kAdded);
}

TEST_F(SpanExporterTest, SpansAreGivenUpWhenTheCollectorIsAwayForTooLong) {
  options_.give_up = milliseconds(500);
  SpanExporter& exporter = Start(Gone());
  for (int i = 0; i < 10; ++i) exporter.Add(SpanOf(i));
  Await(*metrics_.dropped_undelivered, 10);
  EXPECT_EQ(metrics_.dropped_undelivered->Value(), 10);
  EXPECT_GE(metrics_.failures->Value(), 2);
  EXPECT_EQ(metrics_.sent->Value(), 0);
}

TEST_F(SpanExporterTest, ACollectorThatDoesNotAnswerInTimeIsTriedAgain) {
  options_.answer_wait = milliseconds(20);
  collector_.Hold();
  SpanExporter& exporter = Start();
  exporter.Add(SpanOf(7));
  Await(*metrics_.failures, 1);
  collector_.Release();
  Await(*metrics_.sent, 1);
  EXPECT_EQ(Dropped(), 0);
  EXPECT_EQ(collector_.AwaitSpans(2).back().name(), "7");
}

TEST_F(SpanExporterTest, ABusyCollectorIsAskedAgainAfterTheTimeThatItNames) {
  collector_.AnswerWith("503 Service Unavailable", "", "Retry-After: 1\r\n");
  SpanExporter& exporter = Start();
  const auto began = std::chrono::steady_clock::now();
  exporter.Add(SpanOf(0));
  Await(*metrics_.failures, 1);
  collector_.AnswerWith("200 OK");
  collector_.AwaitRequests(2);
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(1000));
  Await(*metrics_.sent, 1);
  EXPECT_EQ(Dropped(), 0);
}

TEST_F(SpanExporterTest, WhatTheCollectorRefusesIsNotSentAgain) {
  collector_.AnswerWith("400 Bad Request", "not like this");
  SpanExporter& exporter = Start();
  exporter.Add(SpanOf(0));
  Await(*metrics_.dropped_rejected, 1);
  collector_.AnswerWith("200 OK");
  exporter.Add(SpanOf(1));
  Await(*metrics_.sent, 1);
  EXPECT_EQ(collector_.AwaitSpans(2).size(), 2u);
  EXPECT_EQ(metrics_.dropped_rejected->Value(), 1);
  EXPECT_EQ(metrics_.failures->Value(), 0);
  EXPECT_THAT(Log(),
              HasSubstr("WARNING trace_spans_refused error=\"HTTP status 400: not like this\""));
}

TEST_F(SpanExporterTest, APartOfABatchMayBeRejected) {
  opentelemetry::ExportTraceServiceResponse response;
  response.mutable_partial_success()->set_rejected_spans(2);
  collector_.AnswerWith("200 OK", response.SerializeAsString());
  options_.batch_delay = std::chrono::hours(1);
  options_.max_batch_spans = 5;
  SpanExporter& exporter = Start();
  for (int i = 0; i < 5; ++i) exporter.Add(SpanOf(i));
  Await(*metrics_.sent, 3);
  Await(*metrics_.dropped_rejected, 2);
  EXPECT_EQ(metrics_.sent->Value() + Dropped(), 5);
}

TEST_F(SpanExporterTest, TheLogSaysOnceThatACollectorFailsAndOnceThatItAnswersAgain) {
  collector_.AnswerWith("502 Bad Gateway", "away");
  SpanExporter& exporter = Start();
  exporter.Add(SpanOf(0));
  Await(*metrics_.failures, 3);
  collector_.AnswerWith("200 OK");
  Await(*metrics_.sent, 1);
  exporter_.reset();
  EXPECT_THAT(Log(), MatchesRegex("[^\n]* WARNING trace_collector_failing error=\"HTTP status 502: "
                                  "away\"\n[^\n]* INFO trace_collector_answers\n"));
}

TEST_F(SpanExporterTest, TheEndSendsWhatWaits) {
  options_.batch_delay = std::chrono::hours(1);
  options_.end_wait = std::chrono::hours(1);
  SpanExporter& exporter = Start();
  for (int i = 0; i < 1000; ++i) exporter.Add(SpanOf(i));
  exporter_.reset();
  EXPECT_EQ(metrics_.sent->Value(), 1000);
  EXPECT_EQ(Dropped(), 0);
}

TEST_F(SpanExporterTest, TheEndDoesNotWaitForAHangingCollector) {
  options_.answer_wait = std::chrono::hours(1);
  options_.end_wait = milliseconds(50);
  collector_.Hold();
  SpanExporter& exporter = Start();
  exporter.Add(SpanOf(0));
  collector_.AwaitRequests(1);
  for (int i = 1; i < 1000; ++i) exporter.Add(SpanOf(i));
  const auto began = std::chrono::steady_clock::now();
  exporter_.reset();
  // It would take an hour. Half a minute is for a busy machine.
  EXPECT_LE(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_EQ(metrics_.dropped_undelivered->Value(), 1000);
}

TEST_F(SpanExporterTest, TheEndDoesNotWaitForTheNextAttempt) {
  options_.first_retry = options_.longest_retry = options_.give_up = std::chrono::hours(1);
  SpanExporter& exporter = Start(Gone());
  exporter.Add(SpanOf(0));
  Await(*metrics_.failures, 1);
  exporter_.reset();
  EXPECT_EQ(metrics_.dropped_undelivered->Value(), 1);
}

}  // namespace
}  // namespace phimap::testing
