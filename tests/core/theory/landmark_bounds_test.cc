#include "core/theory/landmark_bounds.h"

#include <cmath>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(LandmarkBoundsTest, HaveTheirGoldenValues) {
  struct {
    double margin, error, delta;
    int64_t literal, binomial, f3_literal;
  } const cases[] = {{0.5, 0.1, 0.05, 560, 215, 1231},
                     {0.2, 0.1, 0.05, 2240, 1150, 4591},
                     {0.1, 0.1, 0.05, 8240, 4307, 16591},
                     {0.1, 0.01, 0.05, 82397, 43225, 165903}};
  for (const auto& c : cases) {
    EXPECT_EQ(LiteralLandmarks(c.margin, c.error, c.delta), c.literal);
    EXPECT_EQ(BinomialLandmarks(c.margin, c.error, c.delta), c.binomial);
    EXPECT_EQ(LiteralLandmarks(c.margin, c.error / 2, c.delta / 2), c.f3_literal);
  }
}

// Compares the number of landmarks by Chernoff's bound with the number by the binomial law.
// Chernoff's bound is an upper bound on this law, so the law never requires more landmarks. If many
// draws must help, the law requires about half as many. This is because the paper states the
// constant 8 where its proof gives 4.
TEST(LandmarkBoundsTest, TheBinomialLawIsNeverWorse) {
  for (double margin : {1.0, 0.7, 0.3, 0.05, 0.001}) {
    for (double error : {0.9, 0.3, 0.01, 1e-5}) {
      for (double delta : {0.9, 0.05, 1e-9}) {
        EXPECT_LE(BinomialLandmarks(margin, error, delta), LiteralLandmarks(margin, error, delta))
            << margin << " " << error << " " << delta;
      }
    }
  }
  EXPECT_GT(2.02 * static_cast<double>(BinomialLandmarks(0.001, 0.01, 0.05).value()),
            LiteralLandmarks(0.001, 0.01, 0.05).value());
}

TEST(LandmarkBoundsTest, WholeNumbersAreNotRoundedUp) {
  struct {
    double margin;
    int64_t draws;
  } const cases[] = {{1, 3},       {0.5, 15},     {0.4, 24},           {0.2, 99}, {0.1, 399},
                     {0.05, 1599}, {0.01, 39999}, {1e-4, 399'999'999}, {0.3, 44}, {0.7, 8}};
  for (const auto& c : cases) EXPECT_EQ(HelpfulDraws(c.margin), c.draws) << c.margin;
}

TEST(LandmarkBoundsTest, TheErrorOfLandmarksIsTheInverse) {
  for (double margin : {0.5, 0.1}) {
    for (double error : {0.3, 0.01}) {
      const int64_t landmarks = BinomialLandmarks(margin, error, 0.05).value();
      const double least = ErrorOfLandmarks(margin, landmarks, 0.05).value();
      EXPECT_LE(least, error);
      EXPECT_EQ(BinomialLandmarks(margin, least, 0.05), landmarks);
    }
  }
  EXPECT_EQ(ErrorOfLandmarks(0.1, 398, 0.05), std::nullopt);  // 399 draws must help
  // With 399 landmarks, all 399 draws must help. The least error ε for which this has probability 1
  // − δ = 0.95 satisfies ε^399 = 0.95.
  EXPECT_NEAR(ErrorOfLandmarks(0.1, 399, 0.05).value_or(1), std::pow(0.95, 1 / 399.0), 1e-9);
}

TEST(LandmarkBoundsTest, OverTwoToThe53ThereIsNoNumber) {
  EXPECT_EQ(LiteralLandmarks(1e-4, 1e-12, 0.05), std::nullopt);
  EXPECT_EQ(BinomialLandmarks(1e-4, 1e-12, 0.05), std::nullopt);
}

}  // namespace
}  // namespace phimap::testing
