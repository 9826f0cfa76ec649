#include "server/build/memory_budget.h"

#include <optional>

#include "core/status/error.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

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
  EXPECT_EQ(DetailOf(budget.Reserve(101).status())->retry_delay_ms, 0);
}

}  // namespace
}  // namespace phimap
