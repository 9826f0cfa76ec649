#include "server/admission/request_memory.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

TEST(RequestMemoryTest, TakesUpToTheLimitAndGivesBack) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> first = memory.Take(nullptr, 60);
  std::optional<RequestMemory::Charge> second = memory.Take(nullptr, 40);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(memory.Take(nullptr, 1).has_value());
  second.reset();
  EXPECT_EQ(memory.held_bytes(), 60);
  EXPECT_FALSE(memory.Take(nullptr, 41).has_value());
  EXPECT_TRUE(memory.Take(nullptr, 40).has_value());
}

TEST(RequestMemoryTest, LetsOneInThatAloneExceedsTheLimit) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> large = memory.Take(nullptr, 1000);
  ASSERT_TRUE(large.has_value());
  EXPECT_FALSE(memory.Take(nullptr, 1).has_value());
  // If no other request holds memory, a request gets any extra memory that it needs.
  std::optional<RequestMemory::Charge> more = memory.Take(nullptr, 500, /*held=*/1000);
  ASSERT_TRUE(more.has_value());
  large->Add(*std::move(more));
  EXPECT_EQ(large->bytes(), 1500);
  large.reset();
  EXPECT_EQ(memory.held_bytes(), 0);
}

TEST(RequestMemoryTest, RequestsThatHoldTheBudgetAreAnsweredOneByOne) {
  RequestMemory memory(100, nullptr);
  const std::optional<RequestMemory::Charge> one = memory.Take(nullptr, 50);
  const std::optional<RequestMemory::Charge> other = memory.Take(nullptr, 50);
  std::optional<RequestMemory::Charge> answer = memory.TakeForAnswer(nullptr, 70);
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(memory.TakeForAnswer(nullptr, 1).has_value());
  answer.reset();
  EXPECT_TRUE(memory.TakeForAnswer(nullptr, 70).has_value());
  EXPECT_EQ(memory.held_bytes(), 100);
}

TEST(RequestMemoryTest, AnswersThatNobodyTakesDoNotStopTheOneBeyondTheBudget) {
  RequestMemory memory(100, nullptr);
  const RequestMemory::Charge told = memory.TakeUnconditionally(nullptr, 10);
  const std::optional<RequestMemory::Charge> unread = memory.TakeForAnswer(nullptr, 20);
  const std::optional<RequestMemory::Charge> requests = memory.Take(nullptr, 70);
  ASSERT_TRUE(unread.has_value() && requests.has_value());
  const std::optional<RequestMemory::Charge> beyond = memory.TakeForAnswer(nullptr, 70);
  EXPECT_TRUE(beyond.has_value());
  EXPECT_FALSE(memory.TakeForAnswer(nullptr, 1).has_value());
}

TEST(RequestMemoryTest, LargeRequestsLeaveASixteenthToSmallOnes) {
  constexpr int64_t kKiB = 1 << 10;
  RequestMemory memory(16'000 * kKiB, nullptr);
  const std::optional<RequestMemory::Charge> small = memory.Take(nullptr, 1);
  const std::optional<RequestMemory::Charge> large = memory.Take(nullptr, 14'900 * kKiB);
  ASSERT_TRUE(large.has_value());
  // Large requests may take up to 15,000 KiB in all.
  EXPECT_FALSE(memory.Take(nullptr, 100 * kKiB).has_value());
  EXPECT_TRUE(memory.Take(nullptr, 100 * kKiB - 1).has_value());
  std::optional<RequestMemory::Charge> all = memory.Take(nullptr, 64 * kKiB);
  for (int i = 0; i < 16; ++i) {
    std::optional<RequestMemory::Charge> more = memory.Take(nullptr, 64 * kKiB);
    ASSERT_TRUE(more.has_value());
    all->Add(*std::move(more));
  }
  EXPECT_FALSE(memory.Take(nullptr, 64 * kKiB).has_value());
}

TEST(RequestMemoryTest, WhatWaitsIsASixteenthBesideTheBudget) {
  RequestMemory memory(32 << 20, nullptr);
  EXPECT_TRUE(memory.TakeWaiting(nullptr, 2 << 20));
  EXPECT_FALSE(memory.TakeWaiting(nullptr, 1));
  memory.ReturnWaiting(nullptr, 1);
  EXPECT_TRUE(memory.TakeWaiting(nullptr, 1));
  EXPECT_EQ(memory.held_bytes(), 0);
}

// Waits for `bytes`, and counts what is granted.
struct Waiter {
  Waiter(RequestMemory& memory, const CallerPointer& caller, int64_t bytes, int64_t held = 0) {
    *this->held = held;
    now = memory.TakeOrWait(
        caller, bytes, this->held, [this](RequestMemory::Charge c) { granted = std::move(c); },
        waiting);
  }

  std::shared_ptr<std::atomic<int64_t>> held = std::make_shared<std::atomic<int64_t>>();
  std::optional<RequestMemory::Charge> now;
  std::optional<RequestMemory::Charge> granted;
  RequestMemory::Waiting waiting;
};

CallerPointer NewCaller() { return std::make_shared<CallerUse>(); }

TEST(RequestMemoryTest, AShrunkChargeLeavesRoomForThoseWhoWait) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> all = memory.Take(nullptr, 100);
  const Waiter waiter(memory, nullptr, 60);
  EXPECT_FALSE(waiter.now.has_value());
  all->ShrinkTo(41);
  EXPECT_FALSE(waiter.granted.has_value());
  all->ShrinkTo(40);
  ASSERT_TRUE(waiter.granted.has_value());
  EXPECT_EQ(waiter.granted->bytes(), 60);
  EXPECT_EQ(memory.held_bytes(), 100);
}

TEST(RequestMemoryTest, AHigherLimitServesThoseWhoWaitAndALowerOneTakesNothingAway) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> all = memory.Take(nullptr, 100);
  const Waiter waiter(memory, nullptr, 60);
  memory.SetMaxBytes(159);
  EXPECT_FALSE(waiter.granted.has_value());
  memory.SetMaxBytes(160);
  EXPECT_TRUE(waiter.granted.has_value());
  memory.SetMaxBytes(100);
  EXPECT_EQ(memory.held_bytes(), 160);
  all->ShrinkTo(40);
  EXPECT_FALSE(memory.Take(nullptr, 1).has_value());
  all->ShrinkTo(39);
  EXPECT_TRUE(memory.Take(nullptr, 1).has_value());
}

TEST(RequestMemoryTest, OnlyAsManyAreWokenAsThereIsRoomFor) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> all = memory.Take(nullptr, 100);
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 900; ++i) waiters.push_back(std::make_unique<Waiter>(memory, nullptr, 10));
  all->ShrinkTo(75);
  for (int i = 0; i < 900; ++i) EXPECT_EQ(waiters[i]->granted.has_value(), i < 2) << i;
  // Who gives up frees nothing and is passed over; who was served passes its room on.
  waiters[2].reset();
  waiters[0].reset();
  EXPECT_TRUE(waiters[3]->granted.has_value());
  EXPECT_FALSE(waiters[4]->granted.has_value());
}

TEST(RequestMemoryTest, CallersThatWaitAreServedInTurns) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> all = memory.Take(nullptr, 100);
  const CallerPointer many = NewCaller();
  const CallerPointer few = NewCaller();
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 9; ++i) waiters.push_back(std::make_unique<Waiter>(memory, many, 10));
  const Waiter one(memory, few, 10);
  const Waiter two(memory, few, 10);
  all->ShrinkTo(60);
  EXPECT_TRUE(one.granted.has_value());
  EXPECT_TRUE(two.granted.has_value());
  EXPECT_TRUE(waiters[1]->granted.has_value());
  EXPECT_FALSE(waiters[2]->granted.has_value());
}

TEST(RequestMemoryTest, AStreamThatWaitsHasAnyAmountOnceOnlyItselfHoldsMemory) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> others = memory.Take(nullptr, 10);
  std::optional<RequestMemory::Charge> own = memory.Take(nullptr, 60);
  const Waiter waiter(memory, nullptr, 500, /*held=*/60);
  EXPECT_FALSE(waiter.now.has_value());
  others->Release();
  EXPECT_TRUE(waiter.granted.has_value());
}

TEST(RequestMemoryTest, ACallerHoldsAtMostHalfWhileOthersAsk) {
  RequestMemory memory(100, nullptr);
  const CallerPointer greedy = NewCaller();
  const CallerPointer other = NewCaller();
  // Alone it may have everything.
  std::optional<RequestMemory::Charge> first = memory.Take(greedy, 45);
  std::optional<RequestMemory::Charge> second = memory.Take(greedy, 45);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(memory.HoldsTooMuch(greedy));
  EXPECT_TRUE(memory.Take(other, 1).has_value());
  EXPECT_TRUE(memory.HoldsTooMuch(greedy));
  second->Release();
  EXPECT_FALSE(memory.HoldsTooMuch(greedy));
  EXPECT_TRUE(memory.Take(greedy, 5).has_value());
  EXPECT_FALSE(memory.Take(greedy, 6).has_value());
  EXPECT_TRUE(memory.Take(nullptr, 6).has_value());
  EXPECT_TRUE(memory.Take(other, 50).has_value());
  EXPECT_THAT(std::string(memory.Full(greedy, "the request", 6).message()),
              HasSubstr("at most half while others ask"));
  // An answer too, unless it is the only large one.
  {
    const std::optional<RequestMemory::Charge> only = memory.TakeForAnswer(greedy, 6);
    EXPECT_TRUE(only.has_value());
    EXPECT_FALSE(memory.TakeForAnswer(greedy, 1).has_value());
  }
  // Nobody else holds anything now, so any amount is admitted.
  first->Release();
  EXPECT_TRUE(memory.Take(greedy, 200).has_value());
  EXPECT_EQ(greedy->memory_bytes, 0);
}

TEST(RequestMemoryTest, ACallerLeavesHalfOfWhatMayWaitToOthers) {
  RequestMemory memory(32 << 20, nullptr);
  const CallerPointer greedy = NewCaller();
  const CallerPointer other = NewCaller();
  EXPECT_TRUE(memory.TakeWaiting(greedy, 2 << 20));
  memory.ReturnWaiting(greedy, 2 << 20);
  EXPECT_TRUE(memory.Take(other, 1).has_value());
  EXPECT_FALSE(memory.TakeWaiting(greedy, (1 << 20) + 1));
  EXPECT_TRUE(memory.TakeWaiting(greedy, 1 << 20));
  EXPECT_TRUE(memory.TakeWaiting(other, 1 << 20));
  memory.ReturnWaiting(greedy, 1 << 20);
  memory.ReturnWaiting(other, 1 << 20);
}

TEST(RequestMemoryTest, TheRefusalNamesTheLimitAndPassesByWaiting) {
  RequestMemory memory(100, nullptr);
  const std::optional<RequestMemory::Charge> all = memory.Take(nullptr, 100);
  const absl::Status full = memory.Full(nullptr, "the request", 7);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  const std::optional<ErrorDetail> detail = DetailOf(full);
  EXPECT_EQ(detail->reason, "REQUEST_MEMORY_FULL");
  EXPECT_EQ(detail->metadata.at("limit"), "100");
  EXPECT_EQ(detail->metadata.at("actual"), "7");
  EXPECT_GT(detail->retry_delay_ms, 0);
}

TEST(RequestMemoryTest, ThreadsTogetherNeverExceedTheLimit) {
  RequestMemory memory(100, nullptr);
  std::atomic<bool> exceeded{false};
  RunTogether(4, [&](int) {
    for (int i = 0; i < 20'000; ++i) {
      const std::optional<RequestMemory::Charge> charge = memory.Take(nullptr, 40);
      if (memory.held_bytes() > 100) exceeded = true;
    }
  });
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(memory.held_bytes(), 0);
}

}  // namespace
}  // namespace phimap::testing
