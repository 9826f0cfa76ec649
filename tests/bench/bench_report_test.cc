#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <string>
#include <vector>

#include "client/cli/bench/bench_load.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

using google::protobuf::Struct;

Struct Parsed(const std::string& json) {
  Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok()) << json;
  return parsed;
}

std::vector<std::string> Keys(const Struct& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.fields()) keys.push_back(key);
  return keys;
}

LoadOptions Options() {
  LoadOptions options{.target = "unix:/tmp/a \"quoted\" path",
                      .reference = "letters",
                      .rate = 100,
                      .rows = 4,
                      .columns = 16};
  return options;
}

// Returns the result of 10 calls in 2 seconds, 8 of which were answered in 1 ms.
LoadResult Result() {
  LoadResult result;
  result.version = "letters@3";
  result.feature_columns = 499;
  result.seconds = 2;
  result.calls = 10;
  result.answered = 8;
  result.errors = {{"RESOURCE_EXHAUSTED", 2}};
  for (int i = 0; i < 8; ++i) result.latency.Record(1'000'000);
  for (int i = 0; i < 2; ++i) result.refusal_latency.Record(50'000);
  result.generator_cpu_us = 400;
  return result;
}

TEST(LoadJsonTest, HasEveryFieldWhateverWasMeasured) {
  const Struct json = Parsed(LoadJson(Options(), LoadResult{}, 2));
  EXPECT_THAT(
      Keys(json),
      UnorderedElementsAre("target", "protocol", "reference", "version", "feature_columns", "mode",
                           "callers", "offered_calls_per_second", "rows", "columns", "channels",
                           "seconds", "processors", "calls", "answered", "calls_per_second",
                           "rows_per_second", "latency_us", "refusal_latency_us", "lateness_us",
                           "errors", "generator", "server", "share_under_5ms"));
  for (const char* histogram : {"latency_us", "refusal_latency_us", "lateness_us"}) {
    EXPECT_THAT(Keys(json.fields().at(histogram).struct_value()),
                UnorderedElementsAre("count", "mean", "p50", "p90", "p99", "p999", "max"));
  }
  EXPECT_EQ(json.fields().at("server").kind_case(), google::protobuf::Value::kNullValue);
}

TEST(LoadJsonTest, TellsRatesByAnsweredCallsAndCostsByAllCalls) {
  const Struct json = Parsed(LoadJson(Options(), Result(), 2));
  const auto& fields = json.fields();
  EXPECT_EQ(fields.at("target").string_value(), "unix:/tmp/a \"quoted\" path");
  EXPECT_EQ(fields.at("protocol").string_value(), "native");
  EXPECT_EQ(fields.at("mode").string_value(), "open");
  EXPECT_EQ(fields.at("calls_per_second").number_value(), 4);
  EXPECT_EQ(fields.at("rows_per_second").number_value(), 16);
  EXPECT_EQ(fields.at("errors").struct_value().fields().at("RESOURCE_EXHAUSTED").number_value(), 2);
  EXPECT_EQ(fields.at("latency_us").struct_value().fields().at("max").number_value(), 1000);
  const auto& generator = fields.at("generator").struct_value().fields();
  EXPECT_EQ(generator.at("cpu_us_per_call").number_value(), 40);
  // The load generator used 400 µs of the 4 s of CPU time that 2 processors offer in 2 seconds.
  EXPECT_NEAR(generator.at("cpu_share").number_value(), 1e-4, 1e-12);
}

TEST(LoadJsonTest, HasTheServersUseIfItIsKnown) {
  LoadOptions options = Options();
  options.server_pid = 17;
  LoadResult result = Result();
  result.server = ProcessUse{.cpu_us = 1000, .resident_bytes = 5, .peak_resident_bytes = 7};
  const Struct json = Parsed(LoadJson(options, result, 2));
  const Struct& server = json.fields().at("server").struct_value();
  EXPECT_THAT(Keys(server), UnorderedElementsAre("pid", "cpu_us_per_call", "cpu_share",
                                                 "resident_bytes", "peak_resident_bytes"));
  EXPECT_EQ(server.fields().at("cpu_us_per_call").number_value(), 100);
  EXPECT_EQ(server.fields().at("peak_resident_bytes").number_value(), 7);
}

TEST(LoadJsonTest, TellsP999OnlyWhereTenCallsTookLonger) {
  LoadResult result = Result();
  for (int i = 0; i < 9'991; ++i) result.latency.Record(1'000'000);
  const auto p999 = [&] {
    const Struct json = Parsed(LoadJson(Options(), result, 2));
    return json.fields().at("latency_us").struct_value().fields().at("p999");
  };
  EXPECT_EQ(p999().kind_case(), google::protobuf::Value::kNullValue);
  EXPECT_THAT(LoadTable(Options(), result, 2), HasSubstr("         -    1000.0"));
  result.latency.Record(1'000'000);
  EXPECT_NEAR(p999().number_value(), 1000, 1000 * BenchHistogram::kRelativeError);
  EXPECT_THAT(LoadTable(Options(), result, 2), Not(HasSubstr("         -    1000.0")));
}

TEST(LoadJsonTest, TellsTheShareOfAnswersUnderFiveMilliseconds) {
  LoadResult result = Result();  // contains eight calls of 1 ms
  for (int i = 0; i < 2; ++i) result.latency.Record(6'000'000);
  const Struct json = Parsed(LoadJson(Options(), result, 2));
  EXPECT_DOUBLE_EQ(json.fields().at("share_under_5ms").number_value(), 0.8);
}

TEST(LoadTableTest, ShowsRefusalsAndTheirLatencyOnlyIfThereWereSome) {
  const std::string table = LoadTable(Options(), Result(), 2);
  EXPECT_THAT(table, HasSubstr("letters@3"));
  EXPECT_THAT(table, HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(table, HasSubstr("refusal"));
  LoadResult calm = Result();
  calm.errors.clear();
  calm.refusal_latency = BenchHistogram();
  EXPECT_THAT(LoadTable(Options(), calm, 2), Not(HasSubstr("refusal")));
}

TEST(LoadTableTest, SaysWhenTheGeneratorItselfIsTheLimit) {
  LoadResult result = Result();
  EXPECT_THAT(LoadTable(Options(), result, 2), Not(HasSubstr("whole processor")));
  result.generator_cpu_us = 1.95e6;
  EXPECT_THAT(LoadTable(Options(), result, 2), HasSubstr("whole processor"));
}

}  // namespace
}  // namespace phimap::cli
