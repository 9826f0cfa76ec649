#include "server/admission/memory_budget.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(MemoryBudgetTest, GivesOutItsBytesAndTakesThemBack) {
  prometheus::Gauge gauge;
  MemoryBudget budget(100, &gauge);
  std::optional<MemoryBudget::Reservation> a = *budget.Reserve(60);
  EXPECT_EQ(gauge.Value(), 60);
  const absl::Status refused = budget.Reserve(41).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_GT(DetailOf(refused)->retry_delay_ms, 0);
  EXPECT_TRUE(budget.Reserve(40).ok());  // released at once
  MemoryBudget::Reservation moved = *std::move(a);
  a.reset();
  EXPECT_EQ(gauge.Value(), 60);
  { const MemoryBudget::Reservation gone = std::move(moved); }
  EXPECT_EQ(gauge.Value(), 0);
}

TEST(MemoryBudgetTest, WhatCanNeverFitIsRefusedWithoutADelay) {
  prometheus::Gauge gauge;
  MemoryBudget budget(100, &gauge);
  const absl::Status refused = budget.Reserve(101).status();
  EXPECT_EQ(DetailOf(refused)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("needs 101 bytes of memory, more than --build_memory_bytes=100 allows"));
  EXPECT_TRUE(budget.CheckEverFits(100).ok());
  EXPECT_EQ(budget.CheckEverFits(101).message(), refused.message());
}

TEST(MemoryBudgetTest, AHalfTakesFromTheWholeAndLeavesTheOtherHalf) {
  prometheus::Gauge gauge;
  MemoryBudget whole(100, &gauge);
  MemoryBudget half(whole, "evaluations");
  std::optional<MemoryBudget::Reservation> first = *half.Reserve(30);
  MemoryBudget::Reservation second;
  ASSERT_TRUE(half.Grow(second, 20).ok());
  EXPECT_EQ(gauge.Value(), 50);
  const absl::Status later = half.Reserve(1).status();
  EXPECT_GT(DetailOf(later)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(later.message()),
              HasSubstr("other evaluations hold 50 of the limit of 50, half of"));
  const absl::Status never = half.Grow(second, 31);
  EXPECT_EQ(DetailOf(never)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(never.message()),
              HasSubstr("needs 51 bytes of memory, more than the 50 that evaluations may take"));

  // So far the half was full while the whole budget had memory left. From here on the whole budget
  // is full, so a reservation in the half cannot grow either, and the refusal takes no memory.
  std::optional<MemoryBudget::Reservation> others = *whole.Reserve(50);
  first.reset();
  EXPECT_EQ(gauge.Value(), 70);
  const std::optional<MemoryBudget::Reservation> more = *whole.Reserve(25);
  EXPECT_THAT(std::string(half.Grow(second, 10).message()),
              HasSubstr("other builds, imports and evaluations hold 75 of the limit of 100"));
  EXPECT_EQ(gauge.Value(), 95);
  others.reset();
  EXPECT_TRUE(half.Grow(second, 10).ok());
  EXPECT_EQ(gauge.Value(), 55);
}

TEST(MemoryBudgetTest, ANewLimitIsInForceForTheNextReservationsAndForTheHalf) {
  prometheus::Gauge gauge;
  MemoryBudget whole(100, &gauge);
  MemoryBudget half(whole, "evaluations");
  const MemoryBudget::Reservation held = *whole.Reserve(60);
  whole.SetMaxBytes(50);
  EXPECT_EQ(gauge.Value(), 60);
  EXPECT_GT(DetailOf(whole.Reserve(1).status())->retry_delay_ms, 0);
  EXPECT_EQ(DetailOf(whole.Reserve(51).status())->retry_delay_ms, 0);
  EXPECT_FALSE(half.CheckEverFits(26).ok());
  whole.SetMaxBytes(200);
  EXPECT_TRUE(whole.Reserve(140).ok());
  EXPECT_TRUE(half.Reserve(100).ok());
  EXPECT_FALSE(half.Reserve(101).ok());
}

TEST(MemoryBudgetTest, WhatGrowsIsToldOfOthersOnlyWhatOthersHold) {
  prometheus::Gauge gauge;
  MemoryBudget budget(100, &gauge);
  std::optional<MemoryBudget::Reservation> other = *budget.Reserve(30);
  MemoryBudget::Reservation mine;
  ASSERT_TRUE(budget.Grow(mine, 40).ok());
  ASSERT_TRUE(budget.Grow(mine, 30).ok());
  EXPECT_EQ(gauge.Value(), 100);
  const absl::Status later = budget.Grow(mine, 1);
  EXPECT_GT(DetailOf(later)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(later.message()),
              AllOf(HasSubstr("may need 71 bytes"), HasSubstr("hold 30 of the limit of 100")));
  const absl::Status never = budget.Grow(mine, 31);
  EXPECT_EQ(DetailOf(never)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(never.message()), HasSubstr("needs 101 bytes"));
  EXPECT_EQ(budget.Grow(mine, std::numeric_limits<int64_t>::max()).code(),
            StatusCode::kResourceExhausted);
  // A refusal takes no memory, and leaves the reservation as it was.
  EXPECT_EQ(gauge.Value(), 100);
  other.reset();
  EXPECT_TRUE(budget.Grow(mine, 30).ok());
  mine = MemoryBudget::Reservation();
  EXPECT_EQ(gauge.Value(), 0);
}

}  // namespace
}  // namespace phimap::testing
