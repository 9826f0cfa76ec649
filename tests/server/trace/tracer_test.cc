#include "server/trace/tracer.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/thread/steady_time.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "tests/server/trace/collector.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kRemoteTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kRemoteSpan[] = "00f067aa0ba902b7";

TraceParent Remote(bool sampled) {
  return *TraceParent::Parse(
      absl::StrCat("00-", kRemoteTrace, "-", kRemoteSpan, sampled ? "-01" : "-00"));
}

class TracerTest : public ::testing::Test {
 protected:
  const Tracer& Start(double ratio) {
    Tracer::Options options;
    options.ratio = ratio;
    options.version = "1.2.3";
    options.exporter.batch_delay = std::chrono::milliseconds(1);
    return tracer_.emplace(*CollectorClient::Make(collector_.url(), "test"), options, metrics_,
                           logger_);
  }
  // Ends the tracer and returns the spans that it sent, by name.
  std::map<std::string, opentelemetry::Span> SpansByName(size_t count) {
    tracer_.reset();
    EXPECT_EQ(metrics_.sent->Value(), count);
    std::map<std::string, opentelemetry::Span> spans;
    for (opentelemetry::Span& span : collector_.AwaitSpans(count)) {
      const std::string name = span.name();
      EXPECT_TRUE(spans.emplace(name, std::move(span)).second) << name;
    }
    return spans;
  }

  Collector collector_;
  prometheus::Registry registry_;
  const TraceMetrics metrics_{registry_};
  const Logger logger_{LogLevel::kOff};
  std::optional<Tracer> tracer_;
};

TEST_F(TracerTest, SpansSayWhatWasDoneAndWhen) {
  const Tracer& tracer = Start(1);
  const int64_t before = absl::ToUnixNanos(absl::Now());
  Span call = tracer.Start("s.S/M", SpanKind::kServer, nullptr);
  call.Set("rows", 12);
  call.Set("mapping", "letters");
  call.Set("seconds", 0.5);
  call.Set("cached", true);
  Span engine = call.Child("engine");
  engine.Child("collect", SpanKind::kClient).End();
  engine.End();
  call.End();
  const int64_t after = absl::ToUnixNanos(absl::Now());
  std::map<std::string, opentelemetry::Span> spans = SpansByName(3);

  const opentelemetry::Span& root = spans["s.S/M"];
  EXPECT_EQ(root.trace_id().size(), 16u);
  EXPECT_EQ(root.span_id().size(), 8u);
  EXPECT_EQ(root.parent_span_id(), "");
  EXPECT_EQ(root.kind(), opentelemetry::Span::SPAN_KIND_SERVER);
  // Sampled, random, and known to have no parent elsewhere.
  EXPECT_EQ(root.flags(), 0x103u);
  EXPECT_EQ(root.status().code(), opentelemetry::Status::STATUS_CODE_UNSET);
  ASSERT_EQ(root.attributes_size(), 4);
  EXPECT_EQ(root.attributes(0).key(), "rows");
  EXPECT_EQ(root.attributes(0).value().int_value(), 12);
  EXPECT_EQ(root.attributes(1).value().string_value(), "letters");
  EXPECT_EQ(root.attributes(2).value().double_value(), 0.5);
  EXPECT_TRUE(root.attributes(3).value().bool_value());

  const opentelemetry::Span& child = spans["engine"];
  EXPECT_EQ(child.trace_id(), root.trace_id());
  EXPECT_EQ(child.parent_span_id(), root.span_id());
  EXPECT_NE(child.span_id(), root.span_id());
  EXPECT_EQ(child.kind(), opentelemetry::Span::SPAN_KIND_INTERNAL);
  const opentelemetry::Span& grandchild = spans["collect"];
  EXPECT_EQ(grandchild.trace_id(), root.trace_id());
  EXPECT_EQ(grandchild.parent_span_id(), child.span_id());
  EXPECT_EQ(grandchild.kind(), opentelemetry::Span::SPAN_KIND_CLIENT);

  // The clock of spans reads like the wall clock, to which a clock that never jumps was compared.
  constexpr int64_t kSlack = 1'000'000;
  EXPECT_GE(static_cast<int64_t>(root.start_time_unix_nano()), before - kSlack);
  EXPECT_LE(static_cast<int64_t>(root.end_time_unix_nano()), after + kSlack);
  EXPECT_LE(root.start_time_unix_nano(), child.start_time_unix_nano());
  EXPECT_LE(child.start_time_unix_nano(), grandchild.start_time_unix_nano());
  EXPECT_LE(grandchild.start_time_unix_nano(), grandchild.end_time_unix_nano());
  EXPECT_LE(grandchild.end_time_unix_nano(), child.end_time_unix_nano());
  EXPECT_LE(child.end_time_unix_nano(), root.end_time_unix_nano());
}

TEST_F(TracerTest, TheProcessIsDescribed) {
  Start(1).Start("x", SpanKind::kServer, nullptr).End();
  const std::vector<Collector::Request> requests = collector_.AwaitRequests(1);
  const opentelemetry::ResourceSpans& described = requests[0].body.resource_spans(0);
  std::map<std::string, std::string> attributes;
  for (const opentelemetry::KeyValue& attribute : described.resource().attributes()) {
    attributes[attribute.key()] = attribute.value().string_value();
  }
  EXPECT_EQ(attributes["service.name"], "phimapd");
  EXPECT_EQ(attributes["service.version"], "1.2.3");
  EXPECT_EQ(attributes["service.instance.id"].size(), 32u);
  EXPECT_NE(attributes["host.name"], "");
  EXPECT_EQ(described.scope_spans(0).scope().name(), "phimapd");
}

TEST_F(TracerTest, ATimeThatWasMeasuredBeforeBecomesASpan) {
  const absl::Time start = SteadyNow();
  Span call = Start(1).Start("call", SpanKind::kServer, nullptr, start);
  call.Child("queue", SpanKind::kInternal, start + absl::Nanoseconds(5))
      .End(absl::OkStatus(), start + absl::Nanoseconds(12));
  call.End(absl::OkStatus(), start + absl::Nanoseconds(20));
  std::map<std::string, opentelemetry::Span> spans = SpansByName(2);
  const uint64_t begun = spans["call"].start_time_unix_nano();
  EXPECT_EQ(spans["queue"].start_time_unix_nano() - begun, 5u);
  EXPECT_EQ(spans["queue"].end_time_unix_nano() - begun, 12u);
  EXPECT_EQ(spans["call"].end_time_unix_nano() - begun, 20u);
}

TEST_F(TracerTest, ACallerThatRecordsItsTraceIsFollowedWhateverTheRatio) {
  const TraceParent remote = Remote(/*sampled=*/true);
  Span call = Start(0).Start("call", SpanKind::kServer, &remote);
  ASSERT_TRUE(call.recorded());
  const std::optional<TraceParent> onward = call.context().traceparent();
  ASSERT_TRUE(onward.has_value());
  EXPECT_EQ(onward->TraceId(), kRemoteTrace);
  EXPECT_TRUE(onward->sampled());
  call.End();
  const opentelemetry::Span span = SpansByName(1)["call"];
  EXPECT_EQ(absl::BytesToHexString(span.trace_id()), kRemoteTrace);
  EXPECT_EQ(absl::BytesToHexString(span.parent_span_id()), kRemoteSpan);
  // What the next server gets as its parent is this span.
  EXPECT_EQ(onward->ToString(),
            absl::StrCat("00-", kRemoteTrace, "-", absl::BytesToHexString(span.span_id()), "-01"));
  // Sampled, and known to have a parent elsewhere.
  EXPECT_EQ(span.flags(), 0x301u);
}

TEST_F(TracerTest, ACallerThatDoesNotRecordItsTraceIsNotRecordedEither) {
  const TraceParent remote = Remote(/*sampled=*/false);
  const Tracer& tracer = Start(1);
  Span call = tracer.Start("call", SpanKind::kServer, &remote);
  EXPECT_FALSE(call.recorded());
  EXPECT_FALSE(call.context().traceparent().has_value());
  Span child = call.Child("child");
  EXPECT_FALSE(child.recorded());
  EXPECT_FALSE(call.context().Child("child").recorded());
  child.Set("key", 1);
  child.End(absl::InternalError("x"));
  tracer.Start("last", SpanKind::kServer, nullptr).End();
  EXPECT_EQ(SpansByName(1).count("last"), 1u);
}

TEST_F(TracerTest, ATracerWithoutACollectorRecordsNothing) {
  const Tracer tracer;
  const TraceParent remote = Remote(/*sampled=*/true);
  EXPECT_FALSE(tracer.Start("call", SpanKind::kServer, &remote).recorded());
}

TEST_F(TracerTest, ThePartOfTheTracesIsTheRatio) {
  const Tracer& tracer = Start(0.25);
  int recorded = 0;
  for (int i = 0; i < 2000; ++i) {
    recorded += tracer.Start("call", SpanKind::kServer, nullptr).recorded() ? 1 : 0;
  }
  // Six standard deviations of sqrt(2000·0.25·0.75) = 19.4.
  EXPECT_NEAR(recorded, 500, 6 * 19.4);
}

TEST_F(TracerTest, AnErrorIsThatOfTheServerOrOfAStepAndKeepsTheCallersDataOut) {
  const Tracer& tracer = Start(1);
  const absl::Status bad = MakeError(absl::StatusCode::kInvalidArgument, "ROWS_INVALID", "rows",
                                     "expected 3 columns, got secret");
  const absl::Status lost = MakeError(absl::StatusCode::kDataLoss, "BLOB_DAMAGED", "", "secret");
  tracer.Start("refused", SpanKind::kServer, nullptr).End(bad);
  tracer.Start("broken", SpanKind::kServer, nullptr).End(lost);
  tracer.Start("step", SpanKind::kInternal, nullptr).End(bad);
  tracer.Start("bare", SpanKind::kServer, nullptr).End(absl::InternalError("secret"));
  std::map<std::string, opentelemetry::Span> spans = SpansByName(4);
  EXPECT_EQ(spans["bare"].status().message(), "INTERNAL");
  EXPECT_EQ(spans["refused"].status().code(), opentelemetry::Status::STATUS_CODE_UNSET);
  EXPECT_EQ(spans["broken"].status().code(), opentelemetry::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(spans["broken"].status().message(), "DATA_LOSS: BLOB_DAMAGED");
  EXPECT_EQ(spans["step"].status().code(), opentelemetry::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(spans["step"].status().message(), "INVALID_ARGUMENT: ROWS_INVALID");
}

// A collector refuses a whole request that has one text which is not UTF-8.
TEST_F(TracerTest, TextsAreUtf8AndShort) {
  Span call = Start(1).Start("call", SpanKind::kServer, nullptr);
  call.Set("bad", "\xff");
  call.Set("long", std::string(10'000, 'x'));
  call.Set("fine", "φ");
  call.End();
  const opentelemetry::Span span = SpansByName(1)["call"];
  EXPECT_EQ(span.attributes(0).value().string_value(), "\\xff");
  EXPECT_LE(span.attributes(1).value().string_value().size(), 256u);
  EXPECT_EQ(span.attributes(2).value().string_value(), "φ");
}

TEST_F(TracerTest, ASpanEndsOnceAndAtTheLatestWhenItIsDestroyed) {
  const Tracer& tracer = Start(1);
  {
    Span first = tracer.Start("moved", SpanKind::kServer, nullptr);
    Span second = std::move(first);
    EXPECT_FALSE(first.recorded());  // NOLINT(bugprone-use-after-move): it is an empty span
    second.End();
    second.End();
    second.Set("late", 1);
    Span third = tracer.Start("assigned", SpanKind::kServer, nullptr);
    third = Span();
  }
  EXPECT_EQ(SpansByName(2)["moved"].attributes_size(), 0);
}

TEST_F(TracerTest, StepsOnOtherThreadsOutliveTheSpanThatTheyBelongTo) {
  Span call = Start(1).Start("call", SpanKind::kServer, nullptr);
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b", "c", "d"}) {
    threads.emplace_back([name, context = call.context()] { context.Child(name).End(); });
  }
  call.End();
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, opentelemetry::Span> spans = SpansByName(5);
  EXPECT_EQ(spans["d"].parent_span_id(), spans["call"].span_id());
}

}  // namespace
}  // namespace phimap::testing
