#include "server/trace/span_ids.h"

#include <set>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(SpanIdsTest, IdsDiffer) {
  std::set<TraceId> traces;
  std::set<SpanId> spans;
  for (int i = 0; i < 10'000; ++i) {
    traces.insert(NewTraceId());
    spans.insert(NewSpanId());
  }
  EXPECT_EQ(traces.size(), 10'000u);
  EXPECT_EQ(spans.size(), 10'000u);
  EXPECT_EQ(traces.count(TraceId{}), 0u);
  EXPECT_EQ(spans.count(SpanId{}), 0u);
}

// A trace id whose last eight bytes, of which the rule takes the upper 63 bits, are `number`.
TraceId IdOf(uint64_t number) {
  TraceId id{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  for (int i = 15; i >= 8; --i, number >>= 8) id[static_cast<size_t>(i)] = number & 0xff;
  return id;
}

// The expected values are those of OpenTelemetry's Go SDK, whose rule it is:
// BigEndian.Uint64(id[8:16]) >> 1 < uint64(ratio * 2^63).
TEST(SpanIdsTest, ATraceIsChosenByTheLastEightBytesOfItsId) {
  EXPECT_TRUE(IsChosen(IdOf(0x3fffffffffffffff), 0.25));
  EXPECT_FALSE(IsChosen(IdOf(0x4000000000000000), 0.25));
  EXPECT_TRUE(IsChosen(IdOf(0xffffffffffffffff), 1));
  EXPECT_FALSE(IsChosen(IdOf(0), 0));
  EXPECT_TRUE(IsChosen(IdOf(0), 1e-18));
}

// The number of chosen traces is binomial with a standard deviation of sqrt(20000·0.1·0.9) = 42.
// Six of them are never exceeded by chance.
TEST(SpanIdsTest, TheRatioIsThatOfTheChosenTraces) {
  int chosen = 0;
  for (int i = 0; i < 20'000; ++i) chosen += IsChosen(NewTraceId(), 0.1) ? 1 : 0;
  EXPECT_NEAR(chosen, 2000, 6 * 42);
}

}  // namespace
}  // namespace phimap::testing
