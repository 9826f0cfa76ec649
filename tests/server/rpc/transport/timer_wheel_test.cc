#include "server/rpc/transport/timer_wheel.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

struct CountingTimer final : Timer {
  void OnTime() override {
    ++fired;
    if (then) then();
  }
  int fired = 0;
  std::function<void()> then;
};

TEST(TimerWheelTest, FiresWithinATickAfterItsTimeAndNeverBefore) {
  for (const absl::Duration after :
       {absl::ZeroDuration(), absl::Nanoseconds(1), TimerWheel::kTick - absl::Nanoseconds(1),
        TimerWheel::kTick, absl::Milliseconds(7), absl::Seconds(30), absl::Hours(24)}) {
    SCOPED_TRACE(absl::FormatDuration(after));
    TimerWheel wheel(kStart);
    CountingTimer timer;
    wheel.Set(timer, kStart + after);
    EXPECT_LE(wheel.Next(), kStart + after + TimerWheel::kTick);
    wheel.Advance(kStart + after - absl::Nanoseconds(1));
    EXPECT_EQ(timer.fired, 0);
    wheel.Advance(kStart + after + TimerWheel::kTick);
    EXPECT_EQ(timer.fired, 1);
    EXPECT_FALSE(timer.is_set());
    EXPECT_EQ(wheel.Next(), absl::InfiniteFuture());
  }
}

TEST(TimerWheelTest, InfiniteFutureCancels) {
  TimerWheel wheel(kStart);
  CountingTimer timer;
  wheel.Set(timer, kStart);
  wheel.Set(timer, absl::InfiniteFuture());
  EXPECT_FALSE(timer.is_set());
  wheel.Advance(kStart + absl::Hours(1));
  EXPECT_EQ(timer.fired, 0);
}

TEST(TimerWheelTest, TimerOfAnotherThatIsDueMayBeCancelledOrDestroyedByIt) {
  TimerWheel wheel(kStart);
  // The timer that fires first destroys one of the other two timers, and cancels the third.
  std::array<std::unique_ptr<CountingTimer>, 3> timers;
  int fired = 0;
  for (size_t i = 0; i < timers.size(); ++i) {
    timers[i] = std::make_unique<CountingTimer>();
    timers[i]->then = [&, i] {
      ++fired;
      timers[(i + 1) % 3].reset();
      timers[(i + 2) % 3]->Cancel();
    };
    wheel.Set(*timers[i], kStart + absl::Milliseconds(10));
  }
  wheel.Advance(kStart + absl::Seconds(1));
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(wheel.Next(), absl::InfiniteFuture());
}

TEST(TimerWheelTest, TimerMaySetItselfAgain) {
  TimerWheel wheel(kStart);
  CountingTimer timer;
  timer.then = [&] { wheel.Set(timer, kStart + absl::Seconds(timer.fired)); };
  wheel.Set(timer, kStart);
  for (int second = 0; second < 30; ++second) {
    wheel.Advance(kStart + absl::Seconds(second) + TimerWheel::kTick);
    EXPECT_EQ(timer.fired, second + 1);
  }
}

// Performs random operations (set, move, cancel and advance), and compares the wheel with a plain
// list of timers. Many timers are set further ahead than the wheel's 4096 ticks.
TEST(TimerWheelTest, AgreesWithAList) {
  std::mt19937_64 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  constexpr int kTimers = 50;
  TimerWheel wheel(kStart);
  std::vector<CountingTimer> timers(kTimers);
  std::map<int, absl::Time> set;  // the list to compare with
  std::vector<int> expected_fired(kTimers);
  absl::Time now = kStart;
  for (int step = 0; step < 20'000; ++step) {
    const int which = static_cast<int>(below(kTimers));
    const int64_t kind = below(10);
    if (kind < 5) {
      const int64_t span_ms = below(3) == 0 ? 40'000 : 200;
      const absl::Time at = now + absl::Microseconds(below(span_ms * 1000)) - absl::Milliseconds(5);
      wheel.Set(timers[which], at);
      // A timer that is set to a time in the past is due at once.
      set[which] = std::max(at, now);
    } else if (kind < 7) {
      timers[which].Cancel();
      set.erase(which);
    } else {
      now += absl::Microseconds(below(below(20) == 0 ? 20'000'000 : 20'000));
      wheel.Advance(now);
      for (int i = 0; i < kTimers; ++i) {
        const auto found = set.find(i);
        if (found == set.end() || timers[i].is_set()) continue;
        ASSERT_LE(found->second, now) << "fired before its time";
        ++expected_fired[i];
        set.erase(found);
      }
      for (const auto& [i, at] : set) {
        ASSERT_GT(at + TimerWheel::kTick, now) << "late by more than a tick";
        ASSERT_LE(wheel.Next(), at + TimerWheel::kTick);
      }
    }
    for (int i = 0; i < kTimers; ++i) ASSERT_EQ(timers[i].fired, expected_fired[i]);
  }
}

}  // namespace
}  // namespace phimap::testing
