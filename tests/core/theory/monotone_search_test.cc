#include "core/theory/monotone_search.h"

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(MonotoneSearchTest, FindsTheFirstFromEveryGuess) {
  for (int64_t low : {0, 1, 5}) {
    for (int64_t first = low; first <= 40; ++first) {
      for (int64_t guess = -3; guess <= 45; ++guess) {
        EXPECT_EQ(FirstWhere(low, 40, guess, [=](int64_t n) { return n >= first; }), first)
            << low << " " << guess;
      }
    }
  }
}

TEST(MonotoneSearchTest, SaysWhenThereIsNone) {
  for (int64_t guess : {0, 7, 40, 100}) {
    EXPECT_EQ(FirstWhere(0, 40, guess, [](int64_t) { return false; }), std::nullopt);
  }
}

TEST(MonotoneSearchTest, AGoodGuessIsCheapAndABadOneLogarithmic) {
  const int64_t first = 123'456'789'012;
  int calls = 0;
  const auto holds = [&](int64_t n) {
    ++calls;
    return n >= first;
  };
  EXPECT_EQ(FirstWhere(1, int64_t{1} << 60, first, holds), first);
  EXPECT_LE(calls, 2);
  calls = 0;
  EXPECT_EQ(FirstWhere(1, int64_t{1} << 60, 1, holds), first);
  EXPECT_LE(calls, 2 * 38);  // 2^37 is the first power of two over `first`
}

}  // namespace
}  // namespace phimap::testing
