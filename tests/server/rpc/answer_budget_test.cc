#include "server/rpc/answer_budget.h"

#include <utility>

#include "core/status/error.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

TEST(AnswerBudgetTest, ReservationsAreGivenBackOnceWhoeverHoldsThem) {
  AnswerBudget budget(100);
  {
    absl::StatusOr<AnswerBudget::Reservation> a = budget.Reserve(60);
    ASSERT_TRUE(a.ok());
    AnswerBudget::Reservation moved = *std::move(a);
    EXPECT_EQ(moved.bytes(), 60);
    EXPECT_EQ(budget.reserved_bytes(), 60);
    AnswerBudget::Reservation assigned;
    assigned = std::move(moved);
    EXPECT_EQ(budget.reserved_bytes(), 60);
  }
  EXPECT_EQ(budget.reserved_bytes(), 0);
}

TEST(AnswerBudgetTest, WhatDoesNotFitIsRefusedWithARetryDelayAndTakesNothing) {
  AnswerBudget budget(100);
  const absl::StatusOr<AnswerBudget::Reservation> held = budget.Reserve(60);
  const absl::Status refused = budget.Reserve(41).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused)->reason, "ANSWERS_FULL");
  EXPECT_GT(DetailOf(refused)->retry_delay_ms, 0);
  EXPECT_EQ(budget.reserved_bytes(), 60);
  EXPECT_TRUE(budget.Reserve(40).ok());
}

TEST(AnswerBudgetTest, OneThatIsOverTheBudgetAloneIsLetInWhenNothingElseIs) {
  AnswerBudget budget(100);
  const absl::StatusOr<AnswerBudget::Reservation> large = budget.Reserve(500);
  EXPECT_TRUE(large.ok());
  EXPECT_FALSE(budget.Reserve(1).ok());
}

}  // namespace
}  // namespace phimap
