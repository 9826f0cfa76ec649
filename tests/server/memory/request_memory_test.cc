#include "server/memory/request_memory.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

TEST(RequestMemoryTest, TakesUpToTheLimitAndGivesBack) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> first = memory.Take(60);
  std::optional<RequestMemory::Charge> second = memory.Take(40);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(memory.Take(1).has_value());
  second.reset();
  EXPECT_EQ(memory.held_bytes(), 60);
  EXPECT_FALSE(memory.Take(41).has_value());
  EXPECT_TRUE(memory.Take(40).has_value());
}

TEST(RequestMemoryTest, LetsOneInThatAloneExceedsTheLimit) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> large = memory.Take(1000);
  ASSERT_TRUE(large.has_value());
  EXPECT_FALSE(memory.Take(1).has_value());
  // If no other request holds memory, a request gets any extra memory that it needs.
  std::optional<RequestMemory::Charge> more = memory.Take(500, /*held=*/1000);
  ASSERT_TRUE(more.has_value());
  large->Add(*std::move(more));
  EXPECT_EQ(large->bytes(), 1500);
  large.reset();
  EXPECT_EQ(memory.held_bytes(), 0);
}

TEST(RequestMemoryTest, RequestsThatHoldTheBudgetAreAnsweredOneByOne) {
  RequestMemory memory(100, nullptr);
  const std::optional<RequestMemory::Charge> one = memory.Take(50);
  const std::optional<RequestMemory::Charge> other = memory.Take(50);
  std::optional<RequestMemory::Charge> answer = memory.TakeForAnswer(70);
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(memory.TakeForAnswer(1).has_value());
  answer.reset();
  EXPECT_TRUE(memory.TakeForAnswer(70).has_value());
  EXPECT_EQ(memory.held_bytes(), 100);
}

TEST(RequestMemoryTest, AnswersThatNobodyTakesDoNotStopTheOneBeyondTheBudget) {
  RequestMemory memory(100, nullptr);
  const RequestMemory::Charge told = memory.TakeUnconditionally(10);
  const std::optional<RequestMemory::Charge> unread = memory.TakeForAnswer(20);
  const std::optional<RequestMemory::Charge> requests = memory.Take(70);
  ASSERT_TRUE(unread.has_value() && requests.has_value());
  const std::optional<RequestMemory::Charge> beyond = memory.TakeForAnswer(70);
  EXPECT_TRUE(beyond.has_value());
  EXPECT_FALSE(memory.TakeForAnswer(1).has_value());
}

TEST(RequestMemoryTest, LargeRequestsLeaveASixteenthToSmallOnes) {
  constexpr int64_t kKiB = 1 << 10;
  RequestMemory memory(16'000 * kKiB, nullptr);
  const std::optional<RequestMemory::Charge> small = memory.Take(1);
  const std::optional<RequestMemory::Charge> large = memory.Take(14'900 * kKiB);
  ASSERT_TRUE(large.has_value());
  // Large requests may take up to 15,000 KiB in all.
  EXPECT_FALSE(memory.Take(100 * kKiB).has_value());
  EXPECT_TRUE(memory.Take(100 * kKiB - 1).has_value());
  std::optional<RequestMemory::Charge> all = memory.Take(64 * kKiB);
  for (int i = 0; i < 16; ++i) {
    std::optional<RequestMemory::Charge> more = memory.Take(64 * kKiB);
    ASSERT_TRUE(more.has_value());
    all->Add(*std::move(more));
  }
  EXPECT_FALSE(memory.Take(64 * kKiB).has_value());
}

TEST(RequestMemoryTest, WhatWaitsIsASixteenthBesideTheBudget) {
  RequestMemory memory(32 << 20, nullptr);
  EXPECT_TRUE(memory.TakeWaiting(2 << 20));
  EXPECT_FALSE(memory.TakeWaiting(1));
  memory.ReturnWaiting(1);
  EXPECT_TRUE(memory.TakeWaiting(1));
  EXPECT_EQ(memory.held_bytes(), 0);
}

TEST(RequestMemoryTest, AShrunkChargeLeavesRoomAndTellsThoseWhoWait) {
  RequestMemory memory(100, nullptr);
  std::optional<RequestMemory::Charge> all = memory.Take(100);
  int told = 0;
  memory.capacity().Wait([&] { ++told; });
  all->ShrinkTo(30);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(memory.held_bytes(), 30);
  EXPECT_TRUE(memory.Take(70).has_value());
}

TEST(RequestMemoryTest, TheRefusalNamesTheLimitAndPassesByWaiting) {
  RequestMemory memory(100, nullptr);
  const std::optional<RequestMemory::Charge> all = memory.Take(100);
  const absl::Status full = memory.Full("the request", 7);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  const std::optional<ErrorDetail> detail = DetailOf(full);
  EXPECT_EQ(detail->reason, "REQUEST_MEMORY_FULL");
  EXPECT_EQ(detail->metadata.at("limit"), "100");
  EXPECT_EQ(detail->metadata.at("actual"), "7");
  EXPECT_GT(detail->retry_delay_ms, 0);
}

TEST(RequestMemoryTest, ThreadsTogetherNeverExceedTheLimit) {
  RequestMemory memory(100, nullptr);
  std::vector<std::thread> threads;
  std::atomic<bool> exceeded{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        const std::optional<RequestMemory::Charge> charge = memory.Take(40);
        if (memory.held_bytes() > 100) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(memory.held_bytes(), 0);
}

}  // namespace
}  // namespace phimap
