// Tests what a traced call, a traced build and a call to a kernel service send to a collector.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/server/api/server_fixture.h"
#include "tests/server/support/scripted_kernel.h"
#include "tests/server/trace/collector.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kTransform[] = "phimap.v1.TransformService/Transform";
constexpr char kBuild[] = "phimap.v1.MappingService/Build";

std::string AttributeOf(const opentelemetry::Span& span, const std::string& key) {
  for (const opentelemetry::KeyValue& attribute : span.attributes()) {
    if (attribute.key() != key) continue;
    const auto& value = attribute.value();
    return value.string_value().empty() ? std::to_string(value.int_value()) : value.string_value();
  }
  return "";
}

class TracesRpcTest : public ServerFixture {
 protected:
  TracesRpcTest() {
    options_.trace_endpoint = collector_.url();
    options_.trace_ratio = 1;
  }

  // Ends the server, which sends what waits, and returns its spans.
  std::vector<opentelemetry::Span> Spans() {
    Stop();
    return collector_.AwaitSpans(1);
  }

  // The children of the only span of kind server with this name.
  static std::vector<opentelemetry::Span> StepsOf(const std::vector<opentelemetry::Span>& spans,
                                                  const std::string& call) {
    std::vector<opentelemetry::Span> steps;
    const auto found = std::find_if(spans.begin(), spans.end(),
                                    [&](const auto& span) { return span.name() == call; });
    EXPECT_NE(found, spans.end()) << call;
    if (found == spans.end()) return steps;
    for (const opentelemetry::Span& span : spans) {
      if (span.parent_span_id() != found->span_id()) continue;
      EXPECT_EQ(span.trace_id(), found->trace_id());
      EXPECT_LE(span.start_time_unix_nano(), span.end_time_unix_nano());
      EXPECT_GE(span.start_time_unix_nano(), found->start_time_unix_nano());
      steps.push_back(span);
    }
    return steps;
  }

  static std::vector<std::string> NamesOf(const std::vector<opentelemetry::Span>& spans) {
    std::vector<std::string> names;
    for (const opentelemetry::Span& span : spans) names.push_back(span.name());
    return names;
  }

  Collector collector_;
};

TEST_F(TracesRpcTest, TheStepsOfATransformAreChildrenOfItsCall) {
  Start();
  MustBuild();
  Mapped(TransformOf("letter", UniformExamples(7, 3)));
  const std::vector<opentelemetry::Span> steps = StepsOf(Spans(), kTransform);
  EXPECT_THAT(NamesOf(steps),
              UnorderedElementsAre("admission", "receive", "queue", "engine", "send"));
  std::map<std::string, opentelemetry::Span> named;
  for (const opentelemetry::Span& step : steps) named[step.name()] = step;
  // One follows the other.
  EXPECT_LE(named["admission"].end_time_unix_nano(), named["receive"].start_time_unix_nano());
  EXPECT_LE(named["receive"].end_time_unix_nano(), named["queue"].start_time_unix_nano());
  EXPECT_EQ(named["queue"].end_time_unix_nano(), named["engine"].start_time_unix_nano());
  EXPECT_LE(named["engine"].end_time_unix_nano(), named["send"].start_time_unix_nano());
  EXPECT_EQ(AttributeOf(named["engine"], "phimap.mapping"), "letter");
  EXPECT_EQ(AttributeOf(named["engine"], "phimap.version"), "1");
  EXPECT_EQ(AttributeOf(named["engine"], "phimap.rows"), "7");
  EXPECT_GT(std::stoi(AttributeOf(named["send"], "phimap.bytes")), 7 * 5 * 4);
}

TEST_F(TracesRpcTest, ThePhasesOfABuildAndTheStoreAreStepsToo) {
  Start();
  MustBuild();
  Answer(&MappingStub::GetMapping, "name: 'letter'");
  const std::vector<opentelemetry::Span> spans = Spans();
  std::vector<std::string> phases;
  for (const opentelemetry::Span& step : StepsOf(spans, kBuild)) {
    if (step.name() != "build phase") continue;
    EXPECT_EQ(AttributeOf(step, "phimap.mapping"), "letter");
    phases.push_back(AttributeOf(step, "phimap.phase"));
  }
  EXPECT_THAT(phases, ::testing::IsSupersetOf(
                          {"receive", "queue", "gram", "factor", "certificate", "publish"}));
  EXPECT_THAT(NamesOf(StepsOf(spans, "phimap.v1.MappingService/GetMapping")),
              UnorderedElementsAre("admission", "receive", "store", "send"));
}

TEST_F(TracesRpcTest, ACallThatItsCallerDoesNotTraceSendsNothing) {
  Start();
  MustBuild();
  grpc::ClientContext* const context = NewContext();
  context->AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
  v1::TransformResponse response;
  ASSERT_THAT(
      transforms_->Transform(context, TransformOf("letter", UniformExamples(1, 3)), &response),
      IsOk());
  for (const opentelemetry::Span& span : Spans()) EXPECT_NE(span.name(), kTransform);
}

TEST_F(TracesRpcTest, ACallToAKernelServiceCarriesTheTraceOn) {
  ScriptedKernel kernel;
  options_.kernel_services = {{.name = "here", .target = kernel.address(), .tls = false}};
  Start();
  v1::BuildSpec spec = Spec();
  spec.set_kernel("service(endpoint=here, kernel=rbf)");
  ASSERT_THAT(Build(spec, 200), IsOk());
  const size_t before = kernel.trace_parents().size();
  Mapped(TransformOf("letter", UniformExamples(3, 3)));
  const std::vector<std::string> headers = kernel.trace_parents();
  ASSERT_EQ(headers.size(), before + 1);
  const std::vector<opentelemetry::Span> steps = StepsOf(Spans(), kTransform);
  EXPECT_THAT(NamesOf(steps),
              UnorderedElementsAre("admission", "receive", "phimap.v1.KernelService/ComputeBlock",
                                   "queue", "engine", "send"));
  for (const opentelemetry::Span& step : steps) {
    if (step.kind() != opentelemetry::Span::SPAN_KIND_CLIENT) continue;
    // Flags: sampled (1), and with a random trace id (2).
    EXPECT_EQ(headers.back(), absl::StrCat("00-", absl::BytesToHexString(step.trace_id()), "-",
                                           absl::BytesToHexString(step.span_id()), "-03"));
    EXPECT_EQ(AttributeOf(step, "phimap.examples"), "3");
  }
}

TEST_F(TracesRpcTest, ADeadCollectorDelaysNoCall) {
  collector_.Hold();
  Start();
  MustBuild();
  for (int i = 0; i < 200; ++i) Mapped(TransformOf("letter", UniformExamples(1, 3)));
  collector_.Release();
}

}  // namespace
}  // namespace phimap::testing
