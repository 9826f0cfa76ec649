#include <fstream>
#include <string>

#include "bench/bars.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/process.h"

namespace phimap::bench {
namespace {

class BarsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& json) {
    std::ofstream(folder_.path() + "/" + name) << json;
  }
  Bar Find(const std::string& what) {
    const absl::StatusOr<RunResults> results = RunResults::Load(folder_.path());
    EXPECT_TRUE(results.ok()) << results.status();
    for (const Bar& bar : Bars(*results)) {
      if (bar.what.find(what) != std::string::npos) return bar;
    }
    ADD_FAILURE() << "no bar says " << what;
    return {};
  }

  e2e::TemporaryFolder folder_;
};

TEST_F(BarsTest, WhatWasNotMeasuredHasNoVerdict) {
  const absl::StatusOr<RunResults> results = RunResults::Load(folder_.path());
  ASSERT_TRUE(results.ok());
  const std::vector<Bar> bars = Bars(*results);
  EXPECT_GT(bars.size(), 10u);
  for (const Bar& bar : bars) EXPECT_EQ(bar.Met(), std::nullopt) << bar.what;
}

TEST_F(BarsTest, AReportIsTheMedianOfTheRounds) {
  const int own[] = {100, 69, 68};
  for (int round = 0; round < 3; ++round) {
    const std::string suffix = "." + std::to_string(round) + ".json";
    Write("closed-512-1-phimap" + suffix,
          "{\"latency_us\": {\"p50\": " + std::to_string(own[round]) + "}}");
    Write("closed-512-1-floor" + suffix, "{\"latency_us\": {\"p50\": 60}}");
  }
  const Bar bar = Find("d = 512: p50");
  EXPECT_EQ(bar.measured, 69);
  EXPECT_DOUBLE_EQ(bar.limit.value(), 1.15 * 60 + 10);
  EXPECT_EQ(bar.Met(), true);
}

// The rounds of a pair ran under the same disturbance.
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
  // A round that one of them did not finish.
  Write("protocol-16x1-native.4.json", "{\"calls_per_second\": 1000}");
  const Bar bar = Find("one row, 16 callers: Transform's calls/s over its own");
  EXPECT_DOUBLE_EQ(bar.measured.value(), 202.0 / 200);  // of 1.11, 0.83 and 1.01
  EXPECT_EQ(bar.Met(), true);
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
  EXPECT_THAT(std::string(results.status().message()), ::testing::HasSubstr("closed-512-1-floor"));
}

}  // namespace
}  // namespace phimap::bench
