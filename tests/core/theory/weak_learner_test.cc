#include "core/theory/weak_learner.h"

#include <cmath>

#include "core/random/random_stream.h"
#include "gtest/gtest.h"

namespace phimap {
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

// The four points ±(γ, ±s) of the plane, labeled by the first coordinate, w = (1, 0): a separator
// has error 0, 1/2 or 1. More than the stated share of random ones is good; six sigma.
TEST(WeakLearnerTest, RandomSeparatorsSucceedAsOftenAsStated) {
  constexpr int kTrials = 20'000;
  const RandomStream normals(7, StreamId::kProjection);
  uint64_t index = 0;
  for (double margin : {0.9, 0.3, 0.1}) {
    const double s = std::sqrt(1 - margin * margin);
    int good = 0;
    for (int i = 0; i < kTrials; ++i) {
      const double a = normals.Normal(index++);
      const double b = normals.Normal(index++);
      const int wrong = (a * margin + b * s <= 0) + (a * margin - b * s <= 0);
      good += wrong / 2.0 <= 0.5 - margin / 4;
    }
    const double expected = WeakLearnerSuccess(margin, 0) * kTrials;
    EXPECT_GE(good, expected - 6 * std::sqrt(expected)) << margin;
  }
}

}  // namespace
}  // namespace phimap
