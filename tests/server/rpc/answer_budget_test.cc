#include "server/rpc/answer_budget.h"

#include <utility>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/observe/metrics.h"

namespace phimap {
namespace {

TEST(AnswerBudgetTest, ReservationsAreGivenBackOnceWhoeverHoldsThem) {
  Metrics metrics;
  AnswerBudget budget(100, metrics.transform());
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
  Metrics metrics;
  AnswerBudget budget(100, metrics.transform());
  const absl::StatusOr<AnswerBudget::Reservation> held = budget.Reserve(60);
  const absl::Status refused = budget.Reserve(41).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused)->reason, "ANSWERS_FULL");
  EXPECT_GT(DetailOf(refused)->retry_delay_ms, 0);
  EXPECT_EQ(budget.reserved_bytes(), 60);
  EXPECT_TRUE(budget.Reserve(40).ok());
}

TEST(AnswerBudgetTest, OneThatIsOverTheBudgetAloneIsLetInWhenNothingElseIs) {
  Metrics metrics;
  AnswerBudget budget(100, metrics.transform());
  const absl::StatusOr<AnswerBudget::Reservation> large = budget.Reserve(500);
  EXPECT_TRUE(large.ok());
  EXPECT_FALSE(budget.Reserve(1).ok());
}

TEST(AnswerBudgetTest, BytesAreShownAndTheTimeOfAnAnswerCountsOnceFromItsFeatures) {
  Metrics metrics;
  const TransformMetrics& shown = metrics.transform();
  AnswerBudget budget(100, shown);
  {
    const absl::StatusOr<AnswerBudget::Reservation> never_computed = budget.Reserve(10);
    absl::StatusOr<AnswerBudget::Reservation> a = budget.Reserve(60);
    a->Computed();
    const AnswerBudget::Reservation moved = *std::move(a);
    EXPECT_EQ(shown.answer_bytes->Value(), 70);
    EXPECT_FALSE(budget.Reserve(31).ok());
    EXPECT_EQ(shown.answer_bytes->Value(), 70);
    EXPECT_EQ(shown.answer_seconds->Collect().histogram.sample_count, 0);
  }
  EXPECT_EQ(shown.answer_bytes->Value(), 0);
  EXPECT_EQ(shown.answer_seconds->Collect().histogram.sample_count, 1);
}

}  // namespace
}  // namespace phimap
