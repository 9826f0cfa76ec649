#include "server/rpc/answer_budget.h"

#include <utility>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/observe/metrics.h"

namespace phimap {
namespace {

class AnswerBudgetTest : public ::testing::Test {
 protected:
  Metrics metrics_;
  RoomWatch room_;
  AnswerBudget budget_{100, metrics_.transform(), room_};
};

TEST_F(AnswerBudgetTest, AnAnswerIsGivenBackOnceWhoeverHoldsIt) {
  {
    AnswerBudget::Held a = budget_.Hold(60);
    AnswerBudget::Held moved = std::move(a);
    EXPECT_EQ(budget_.held_bytes(), 60);
    AnswerBudget::Held assigned;
    assigned = std::move(moved);
    EXPECT_EQ(budget_.held_bytes(), 60);
  }
  EXPECT_EQ(budget_.held_bytes(), 0);
}

TEST_F(AnswerBudgetTest, WhatDoesNotFitIsRefusedWithARetryDelayAndTakesNothing) {
  const AnswerBudget::Held held = budget_.Hold(60);
  const absl::Status refused = budget_.CheckRoom(41);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused)->reason, "ANSWERS_FULL");
  EXPECT_GT(DetailOf(refused)->retry_delay_ms, 0);
  EXPECT_EQ(budget_.held_bytes(), 60);
  EXPECT_TRUE(budget_.CheckRoom(40).ok());
}

TEST_F(AnswerBudgetTest, OneThatIsOverTheBudgetAloneIsLetInWhenThereAreNone) {
  EXPECT_TRUE(budget_.CheckRoom(500).ok());
  const AnswerBudget::Held large = budget_.Hold(500);
  EXPECT_FALSE(budget_.CheckRoom(1).ok());
}

TEST_F(AnswerBudgetTest, BytesAreShownAndTheTimeOfAnAnswerCountsOnceFromItsFeatures) {
  const TransformMetrics& shown = metrics_.transform();
  {
    AnswerBudget::Held a = budget_.Hold(60);
    const AnswerBudget::Held moved = std::move(a);
    const AnswerBudget::Held none;
    EXPECT_EQ(shown.answer_bytes->Value(), 60);
    EXPECT_EQ(shown.answer_seconds->Collect().histogram.sample_count, 0);
  }
  EXPECT_EQ(shown.answer_bytes->Value(), 0);
  EXPECT_EQ(shown.answer_seconds->Collect().histogram.sample_count, 1);
}

TEST_F(AnswerBudgetTest, WhoWaitsForRoomHearsOfEachAnswerThatIsGone) {
  int heard = 0;
  {
    const AnswerBudget::Held held = budget_.Hold(60);
    room_.Wait([&] {
      EXPECT_TRUE(budget_.CheckRoom(100).ok());
      ++heard;
    });
    EXPECT_EQ(heard, 0);
  }
  EXPECT_EQ(heard, 1);
}

}  // namespace
}  // namespace phimap
