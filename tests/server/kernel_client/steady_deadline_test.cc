#include "core/thread/steady_time.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(SteadyDeadlineTest, IsAsFarAwayOnBothClocks) {
  const absl::Time wall = absl::FromUnixSeconds(1'700'000'000);
  const SteadyTime now{hours(5)};
  EXPECT_EQ(SteadyDeadline(wall + absl::Milliseconds(250), wall, now), now + milliseconds(250));
  EXPECT_EQ(SteadyDeadline(wall - absl::Milliseconds(250), wall, now), now - milliseconds(250));
  EXPECT_EQ(SteadyDeadline(wall, wall, now), now);
}

TEST(SteadyDeadlineTest, WhatIsInfiniteStaysSo) {
  const absl::Time wall = absl::FromUnixSeconds(1'700'000'000);
  const SteadyTime now{hours(5)};
  EXPECT_EQ(SteadyDeadline(absl::InfiniteFuture(), wall, now), SteadyTime::max());
  EXPECT_EQ(SteadyDeadline(absl::InfinitePast(), wall, now), SteadyTime::min());
  // 2^63 nanoseconds are 292 years.
  EXPECT_EQ(SteadyDeadline(wall + absl::Hours(24 * 366 * 300), wall, now), SteadyTime::max());
}

}  // namespace
}  // namespace phimap::testing
