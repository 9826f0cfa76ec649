#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "server/rpc/transport/event_loop.h"

namespace phimap::testing {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(SpinPolicyTest, PaysWhileTheOtherThreadsLeaveACore) {
  SpinPolicy policy(2);
  EXPECT_TRUE(policy.pays());
  // Only the loop's thread ran.
  policy.NoteTimes({.wall = 10 * kMs, .process = 10 * kMs, .thread = 10 * kMs});
  EXPECT_TRUE(policy.pays());
  // Another thread ran all the time.
  policy.NoteTimes({.wall = 20 * kMs, .process = 30 * kMs, .thread = 20 * kMs});
  EXPECT_FALSE(policy.pays());
  // Another thread ran for a fifth of the time.
  policy.NoteTimes({.wall = 30 * kMs, .process = 42 * kMs, .thread = 30 * kMs});
  EXPECT_TRUE(policy.pays());
  // Another thread ran for three tenths of the time.
  policy.NoteTimes({.wall = 40 * kMs, .process = 55 * kMs, .thread = 40 * kMs});
  EXPECT_FALSE(policy.pays());
}

TEST(SpinPolicyTest, OneThreadThatComputesIsLittleOfManyCoresAndAllOfOne) {
  const SpinPolicy::Times another = {.wall = 10 * kMs, .process = 15 * kMs, .thread = 5 * kMs};
  SpinPolicy eight(8);
  eight.NoteTimes(another);
  EXPECT_TRUE(eight.pays());
  SpinPolicy one(1);
  one.NoteTimes(another);
  EXPECT_FALSE(one.pays());
}

TEST(SpinPolicyTest, PaysBesideBusyThreadsOnlyWhileWaitsAreShort) {
  SpinPolicy policy(2);
  policy.NoteTimes({.wall = 10 * kMs, .process = 20 * kMs, .thread = 10 * kMs});
  EXPECT_FALSE(policy.pays());
  for (int i = 0; i < 40; ++i) policy.NoteWait(true);
  EXPECT_TRUE(policy.pays());
  for (int i = 0; i < 40; ++i) policy.NoteWait(i % 2 == 0);
  EXPECT_FALSE(policy.pays());
}

TEST(SpinPolicyTest, LooksOnceInAWindow) {
  SpinPolicy policy(2);
  policy.NoteTimes({.wall = 5 * kMs});
  EXPECT_FALSE(policy.IsDue(5 * kMs + SpinPolicy::kWindowNs - 1));
  EXPECT_TRUE(policy.IsDue(5 * kMs + SpinPolicy::kWindowNs));
}

// Uses the operating system's clocks. Its clock for the CPU time of other threads lags behind.
TEST(SpinPolicyTest, DoesNotPayBesideAThreadThatComputes) {
  std::atomic<bool> stop = false;
  std::thread computes([&] {
    while (!stop) {
    }
  });
  SpinPolicy policy(2);
  policy.NoteTimes(SpinPolicy::Now());
  for (int window = 0; window < 4; ++window) {
    while (!policy.IsDue(SpinPolicy::Now().wall)) {
    }
    policy.NoteTimes(SpinPolicy::Now());
    EXPECT_FALSE(policy.pays());
  }
  stop = true;
  computes.join();
}

}  // namespace
}  // namespace phimap::testing
