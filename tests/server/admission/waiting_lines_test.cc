#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "server/admission/request_memory.h"
#include "tests/server/support/gate.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

TEST(WaitingLinesTest, AnAttemptThatSucceedsAtOnceIsNotTold) {
  WaitingLines lines;
  WaitingLines::Place place;
  int told = 0;
  EXPECT_TRUE(lines.TakeOrJoin(
      nullptr, [] { return true; }, [&] { ++told; }, place));
  EXPECT_FALSE(lines.waited_for());
  lines.Serve();
  EXPECT_EQ(told, 0);
}

TEST(WaitingLinesTest, EachIsToldOnceAndWhoLeftIsNot) {
  WaitingLines lines;
  bool room = false;
  std::vector<int> told(3);
  std::vector<WaitingLines::Place> places(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(lines.TakeOrJoin(
        nullptr, [&] { return room; }, [&told, i] { ++told[i]; }, places[i]));
  }
  lines.Serve();
  EXPECT_EQ(told, std::vector<int>(3));
  places[1] = WaitingLines::Place();
  room = true;
  lines.Serve();
  lines.Serve();
  EXPECT_EQ(told, (std::vector<int>{1, 0, 1}));
  EXPECT_FALSE(lines.waited_for());
}

TEST(WaitingLinesTest, WhatIsFreedWithinATellIsGivenAwayAfterItWithoutNesting) {
  WaitingLines lines;
  WaitingLines::Place place;
  bool room = false;
  int depth = 0;
  int deepest = 0;
  int calls = 0;
  const auto attempt = [&] { return std::exchange(room, false); };
  std::function<void()> told = [&] {
    deepest = std::max(deepest, ++depth);
    if (++calls < 10'000) {
      ASSERT_FALSE(lines.TakeOrJoin(nullptr, attempt, told, place));
      room = true;
      lines.Serve();
    }
    --depth;
  };
  ASSERT_FALSE(lines.TakeOrJoin(nullptr, attempt, told, place));
  room = true;
  lines.Serve();
  EXPECT_EQ(calls, 10'000);
  EXPECT_EQ(deepest, 1);
}

// Capacity for one thread at a time. A lost wake-up would leave a thread waiting forever.
TEST(WaitingLinesTest, NobodyIsForgottenWhenManyShareARoom) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 2000;
  WaitingLines lines;
  std::atomic<bool> taken{false};
  RunTogether(kThreads, [&](int t) {
    const int owner = t % 2;
    const std::vector<int> owners(2);
    for (int i = 0; i < kTurns; ++i) {
      const auto woken = std::make_shared<Gate>();
      WaitingLines::Place place;
      const bool now = lines.TakeOrJoin(
          &owners[owner], [&] { return !taken.exchange(true); }, [woken] { woken->Open(); }, place);
      if (!now) woken->Wait();
      taken.store(false);
      lines.Serve();
    }
  });
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace phimap::testing
