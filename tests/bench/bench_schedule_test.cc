#include "client/cli/bench/bench_load.h"
#include "gtest/gtest.h"

namespace phimap::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(OpenLoopScheduleTest, CallsAreDueAtTheRateFromTheStart) {
  const OpenLoopSchedule schedule{.start_ns = 5 * kSecond, .calls_per_second = 4};
  EXPECT_EQ(schedule.DueNs(0), 5 * kSecond);
  EXPECT_EQ(schedule.DueNs(1), 5 * kSecond + kSecond / 4);
  EXPECT_EQ(schedule.DueNs(8), 7 * kSecond);
}

TEST(OpenLoopScheduleTest, AnOddRateDoesNotDrift) {
  const OpenLoopSchedule schedule{.start_ns = 0, .calls_per_second = 3};
  // At 3 calls a second, a day has 259,200 calls. A double represents its nanoseconds exactly.
  EXPECT_EQ(schedule.DueNs(3 * 86'400), 86'400 * kSecond);
}

TEST(CallTimesTest, LatencyIsCountedFromTheDueTimeAndNotFromWhenItWasSent) {
  const CallTimes call{.due_ns = 100, .sent_ns = 700, .done_ns = 750};
  EXPECT_EQ(call.LatencyNs(), 650);
  EXPECT_EQ(call.LatenessNs(), 600);
}

TEST(BenchWindowTest, ACallCountsForTheRateIfItEndedWithin) {
  const BenchWindow window{.begin_ns = 100, .end_ns = 200};
  EXPECT_FALSE(window.CountsForRate({.due_ns = 50, .sent_ns = 50, .done_ns = 99}));
  EXPECT_TRUE(window.CountsForRate({.due_ns = 50, .sent_ns = 50, .done_ns = 100}));
  EXPECT_FALSE(window.CountsForRate({.due_ns = 150, .sent_ns = 150, .done_ns = 200}));
}

// In an overload, the slowest calls end after the window. Leaving them out would hide the overload.
TEST(BenchWindowTest, AnOpenLoopCountsTheLatencyOfAllThatWereDueWithin) {
  const BenchWindow window{.begin_ns = 100, .end_ns = 200};
  const CallTimes late{.due_ns = 199, .sent_ns = 199, .done_ns = 5000};
  EXPECT_TRUE(window.CountsForLatency(late, /*open_loop=*/true));
  EXPECT_FALSE(window.CountsForLatency(late, /*open_loop=*/false));
  const CallTimes early{.due_ns = 99, .sent_ns = 99, .done_ns = 150};
  EXPECT_FALSE(window.CountsForLatency(early, /*open_loop=*/true));
  EXPECT_TRUE(window.CountsForLatency(early, /*open_loop=*/false));
}

TEST(BenchWindowTest, TellsItsLengthInSeconds) {
  EXPECT_DOUBLE_EQ((BenchWindow{.begin_ns = kSecond, .end_ns = 3 * kSecond}.seconds()), 2);
}

}  // namespace
}  // namespace phimap::cli
