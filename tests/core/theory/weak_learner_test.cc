#include <cmath>

#include "core/random/stream_ids.h"
#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(WeakLearnerTest, HasItsGoldenValue) {
  EXPECT_NEAR(WeakLearnerSuccess(1, 0), 0.0683099, 5e-8);
  EXPECT_NEAR(WeakLearnerSuccess(0.1, 0), 0.00683099, 5e-9);
}

TEST(WeakLearnerTest, ExamplesThatMissTheMarginCostItUntilNothingIsLeft) {
  EXPECT_LT(WeakLearnerSuccess(0.5, 0.01), WeakLearnerSuccess(0.5, 0));
  EXPECT_GT(WeakLearnerSuccess(0.5, 0.01), 0);
  EXPECT_EQ(WeakLearnerSuccess(0.5, 0.2), 0);
}

TEST(WeakLearnerTest, DrawsAreTheFewestThatDo) {
  for (double success : {0.9, 0.06, 1e-6}) {
    for (double delta : {0.5, 0.05, 1e-9}) {
      const double draws = static_cast<double>(WeakLearnerDraws(success, delta));
      EXPECT_LE(draws * std::log1p(-success), std::log(delta) * (1 - 1e-12));
      EXPECT_GT((draws - 1) * std::log1p(-success), std::log(delta) * (1 + 1e-12));
    }
  }
}

// Draws random separators h and computes their errors on four points of the plane. The points are
// ±(γ, ±s), where γ is the margin and s = √(1 − γ²). Points are labeled by the sign of their first
// coordinate, so w = (1, 0) separates them. Each error is 0, 1/2 or 1.
struct RandomSeparators {
  static constexpr int kTrials = 40'000;
  // The number of separators with an error of at most 1/2 − γ/4.
  int good = 0;
  // For separators with h·w >= 0: their number, and the sum of their errors.
  int on_the_right_side = 0;
  double errors = 0;

  explicit RandomSeparators(double margin) {
    const double s = std::sqrt(1 - margin * margin);
    const RandomStream normals(7, StreamId::kProjection);
    for (uint64_t i = 0; i < kTrials; ++i) {
      const double a = normals.Normal(2 * i);
      const double b = normals.Normal(2 * i + 1);
      const double error = ((a * margin + b * s <= 0) + (a * margin - b * s <= 0)) / 2.0;
      good += error <= 0.5 - margin / 4 ? 1 : 0;
      if (a < 0) continue;
      ++on_the_right_side;
      errors += error;
    }
  }
};

// Tests that at least the stated share of random separators is good, up to six standard deviations.
// On these four points the true share is asin(γ)/π. For small margins γ it is about γ/π, which is
// 4.66 times the share that Markov's inequality gives. We know no distribution with a smaller
// share. The test also shows that the true share is less than twice asin(γ)/π.
TEST(WeakLearnerTest, RandomSeparatorsSucceedAsOftenAsStated) {
  for (const double margin : {0.9, 0.3, 0.1}) {
    const RandomSeparators drawn(margin);
    const auto at_least = [&](double share) {
      const double expected = share * RandomSeparators::kTrials;
      return drawn.good >= expected - 6 * std::sqrt(expected);
    };
    const double truth = std::asin(margin) / std::acos(-1.0);
    EXPECT_TRUE(at_least(WeakLearnerSuccess(margin, 0))) << margin;
    EXPECT_TRUE(at_least(truth)) << margin;
    EXPECT_FALSE(at_least(2 * truth)) << margin;
    EXPECT_LT(truth, 6.6 * WeakLearnerSuccess(margin, 0)) << margin;
  }
}

// Figure 1 of the paper: let h be a random separator with h·w >= 0, and take a point at the angle
// acos(γ) from w. Then h puts this point on the wrong side with probability acos(γ)/π. So the
// expected error of h is at most 1/2 − γ/π. The test also shows that it is more than 1/2 − 2γ/π.
// The mean error may deviate by six standard deviations.
TEST(WeakLearnerTest, OnTheRightSideTheExpectedErrorIsThatOfFigureOne) {
  const double pi = std::acos(-1.0);
  for (const double margin : {0.9, 0.3, 0.1}) {
    const RandomSeparators drawn(margin);
    const double mean = drawn.errors / drawn.on_the_right_side;
    const double sigma = 0.25 / std::sqrt(drawn.on_the_right_side);
    EXPECT_NEAR(mean, std::acos(margin) / pi, 6 * sigma) << margin;
    const auto at_most = [&](double error) { return mean <= error + 6 * sigma; };
    EXPECT_TRUE(at_most(0.5 - margin / pi)) << margin;
    EXPECT_FALSE(at_most(0.5 - 2 * margin / pi)) << margin;
  }
}

}  // namespace
}  // namespace phimap::testing
