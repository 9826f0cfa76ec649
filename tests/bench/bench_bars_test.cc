#include <fstream>
#include <string>

#include "bench/bars.h"
#include "gtest/gtest.h"
#include "tests/e2e/process.h"
#include "tests/support/matchers.h"

namespace phimap::bench {
namespace {

class BarsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& json) {
    std::ofstream(folder_.path() + "/" + name) << json;
  }
  Bar Find(const std::string& what) {
    const RunResults results = RunResults::Load(folder_.path()).value();
    for (const Bar& bar : Bars(results)) {
      if (bar.what.find(what) != std::string::npos) return bar;
    }
    ADD_FAILURE() << "no bar's text contains " << what;
    return {};
  }

  e2e::TemporaryFolder folder_;
};

TEST_F(BarsTest, WhatWasNotMeasuredHasNoVerdict) {
  const RunResults results = RunResults::Load(folder_.path()).value();
  const std::vector<Bar> bars = Bars(results);
  EXPECT_GT(bars.size(), 10u);
  for (const Bar& bar : bars) EXPECT_EQ(bar.Met(), std::nullopt) << bar.what;
}

TEST_F(BarsTest, AReportIsTheMedianOfTheRounds) {
  const int own[] = {100, 69, 68};
  for (int round = 0; round < 3; ++round) {
    const std::string suffix = "." + std::to_string(round) + ".json";
    Write("closed-512-1-phimap" + suffix,
          "{\"latency_us\": {\"p99\": " + std::to_string(own[round]) + "}}");
    Write("closed-512-1-floor" + suffix, "{\"latency_us\": {\"p99\": 40}}");
  }
  const Bar bar = Find("d = 512: p99");
  EXPECT_EQ(bar.measured, 69);
  EXPECT_DOUBLE_EQ(bar.limit.value(), 1.5 * 40 + 10);
  EXPECT_EQ(bar.Met(), true);
}

// A disturbance of the machine affects both protocols of a round. So the ratio is taken in each
// round, and the bar is the median of these ratios.
TEST_F(BarsTest, ProtocolsAreComparedWithinEachRound) {
  const int inference[] = {90, 60, 200};
  const int native[] = {100, 50, 202};
  for (int round = 1; round <= 3; ++round) {
    const std::string suffix = "." + std::to_string(round) + ".json";
    Write("protocol-16x1-inference" + suffix,
          "{\"calls_per_second\": " + std::to_string(inference[round - 1]) + "}");
    Write("protocol-16x1-native" + suffix,
          "{\"calls_per_second\": " + std::to_string(native[round - 1]) + "}");
  }
  // One of the two protocols did not finish this round, so the round does not count.
  Write("protocol-16x1-native.4.json", "{\"calls_per_second\": 1000}");
  const Bar bar = Find("one row, 16 callers: Transform's calls/s over its own");
  EXPECT_DOUBLE_EQ(bar.measured.value(), 202.0 / 200);  // the median of 1.11, 0.83 and 1.01
  EXPECT_EQ(bar.Met(), true);
}

// Only the ratio counts: a round in which both programs were slower has the same weight as the
// others.
TEST_F(BarsTest, OneCallerIsToBeAnsweredSoonerThanByTheCallbackEcho) {
  const auto write_round = [&](int round, int own, int floor) {
    const std::string suffix = "." + std::to_string(round) + ".json";
    Write("closed-512-1-phimap" + suffix,
          "{\"latency_us\": {\"p50\": " + std::to_string(own) + "}}");
    Write("closed-512-1-floor" + suffix,
          "{\"latency_us\": {\"p50\": " + std::to_string(floor) + "}}");
  };
  write_round(1, 90, 100);
  write_round(2, 198, 200);
  write_round(3, 105, 100);
  const Bar met = Find("p50 over the callback echo's");
  EXPECT_DOUBLE_EQ(met.measured.value(), 0.99);
  EXPECT_EQ(met.Met(), true);
  write_round(2, 202, 200);
  EXPECT_EQ(Find("p50 over the callback echo's").Met(), false);
}

TEST_F(BarsTest, TheLongestGapIsTheWorstScenariosMedian) {
  Write("closed-512-1-phimap.1.json", R"({"meters": {"longest gap ms": 4.9}})");
  Write("bulk-2048-f2.1.json", R"({"longest gap ms": 3, "server - engine us": 4.1})");
  EXPECT_EQ(Find("between two polls").measured, 4.9);
  EXPECT_EQ(Find("between two polls").Met(), true);
  Write("tls-512-1-phimap.1.json", R"({"meters": {"longest gap ms": 5.1}})");
  EXPECT_EQ(Find("between two polls").Met(), false);
  EXPECT_EQ(Find("beyond the engine's").Met(), false);
  Write("bulk-2048-f2.1.json", R"({"server - engine us": 3.9})");
  EXPECT_EQ(Find("beyond the engine's").Met(), true);
}

TEST_F(BarsTest, SilenceMayMakeOneCallInAHundredLate) {
  Write("idle-512.1.json", R"({"under 5 ms %": 98.9})");
  EXPECT_EQ(Find("1.05 s of silence").Met(), false);
  Write("idle-512.1.json", R"({"under 5 ms %": 99})");
  EXPECT_EQ(Find("1.05 s of silence").Met(), true);
}

TEST_F(BarsTest, TheWorstSizeDecidesOnTheEngine) {
  Write("engine.json", R"({"cpu": "x", "results": [
    {"table": "projection", "target": "AVX2", "mapping": "W", "d": 2048, "rows": 32, "peak_share": 0.95},
    {"table": "projection", "target": "AVX2", "mapping": "W", "d": 2048, "rows": 256, "peak_share": 0.89},
    {"table": "projection", "target": "AVX2", "mapping": "W", "d": 2048, "rows": 1, "peak_share": 0.1},
    {"table": "projection", "target": "AVX2", "mapping": "W", "d": 512, "rows": 32, "peak_share": 0.2}]})");
  const Bar bar = Find("AVX2");
  EXPECT_EQ(bar.measured, 0.89);
  EXPECT_EQ(bar.Met(), false);
}

TEST_F(BarsTest, WithoutRefusalsNothingIsSaidOfTheirLatency) {
  Write("overload-offered.1.json", R"({"refusal_latency_us": {"count": 0, "p99": 0}})");
  EXPECT_EQ(Find("p99 of refusals").Met(), std::nullopt);
  Write("overload-offered.1.json", R"({"refusal_latency_us": {"count": 3, "p99": 900}})");
  EXPECT_EQ(Find("p99 of refusals").Met(), true);
}

TEST_F(BarsTest, ADamagedFileIsNamed) {
  Write("closed-512-1-floor.1.json", "{\"latency_us\": ");
  const absl::StatusOr<RunResults> results = RunResults::Load(folder_.path());
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("closed-512-1-floor"));
}

}  // namespace
}  // namespace phimap::bench
