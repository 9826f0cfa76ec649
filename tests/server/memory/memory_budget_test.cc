#include "server/memory/memory_budget.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemoryBudgetTest, GivesOutItsBytesAndTakesThemBack) {
  prometheus::Gauge gauge;
  MemoryBudget budget(100, &gauge);
  std::optional<MemoryBudget::Reservation> a = *budget.Reserve(60);
  EXPECT_EQ(gauge.Value(), 60);
  const absl::Status refused = budget.Reserve(41).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(DetailOf(refused)->retry_delay_ms, 0);
  EXPECT_TRUE(budget.Reserve(40).ok());  // and is given back at once
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
            absl::StatusCode::kResourceExhausted);
  // A refusal takes nothing, and leaves what was there.
  EXPECT_EQ(gauge.Value(), 100);
  other.reset();
  EXPECT_TRUE(budget.Grow(mine, 30).ok());
  mine = MemoryBudget::Reservation();
  EXPECT_EQ(gauge.Value(), 0);
}

}  // namespace
}  // namespace phimap
