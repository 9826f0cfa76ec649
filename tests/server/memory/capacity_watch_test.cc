#include "server/memory/capacity_watch.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/support/gate.h"

namespace phimap::testing {
namespace {

TEST(CapacityWatchTest, EachWhoWaitsIsCalledOnceAtTheNextNotify) {
  CapacityWatch watch;
  int first = 0;
  int second = 0;
  watch.Notify();
  watch.Wait([&] { ++first; });
  watch.Wait([&] { ++second; });
  EXPECT_EQ(first + second, 0);
  watch.Notify();
  watch.Notify();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(CapacityWatchTest, WhatACallbackFreesIsToldOfAfterItWithoutNesting) {
  CapacityWatch watch;
  int depth = 0;
  int deepest = 0;
  int calls = 0;
  std::function<void()> callback = [&] {
    deepest = std::max(deepest, ++depth);
    if (++calls < 10'000) {
      watch.Wait(callback);
      watch.Notify();
    }
    --depth;
  };
  watch.Wait(callback);
  watch.Notify();
  EXPECT_EQ(calls, 10'000);
  EXPECT_EQ(deepest, 1);
}

TEST(CapacityWatchTest, OneWhoWaitsAgainWithinItsCallbackWaitsForTheNext) {
  CapacityWatch watch;
  int calls = 0;
  std::function<void()> callback = [&] {
    ++calls;
    watch.Wait(callback);
  };
  watch.Wait(callback);
  watch.Notify();
  EXPECT_EQ(calls, 1);
  watch.Notify();
  EXPECT_EQ(calls, 2);
}

// Follows the protocol that capacity_watch.h describes, with capacity for one thread at a time. A
// lost wake-up would leave a thread waiting forever.
TEST(CapacityWatchTest, NobodyIsForgottenWhenManyShareARoom) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 2000;
  CapacityWatch watch;
  std::atomic<bool> taken{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        while (taken.exchange(true)) {
          const auto woken = std::make_shared<Gate>();
          watch.Wait([woken] { woken->Open(); });
          if (!taken.exchange(true)) break;
          woken->Wait();
        }
        taken.store(false);
        watch.Notify();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace phimap::testing
