#include "core/certificate/pair_error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// A simulated distribution of the errors of pairs of rows. `error` draws the error of one pair. Its
// arguments are a normal number for each of the two rows, and a source of random numbers for the
// pair itself.
struct PairLaw {
  std::string name;
  std::function<double(double, double, RandomCursor&)> error;
  double mean = 0;
  // Returns the share of all pairs whose error exceeds a given number.
  std::function<double(double)> share;
};

double Upper(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

PairLaw ModeratePairs() {
  return {"moderate",
          [](double, double, RandomCursor& random) { return std::abs(random.Normal()); },
          std::sqrt(2 / M_PI),
          {}};
}
PairLaw ModerateRows() {
  return {"moderate rows",
          [](double a, double b, RandomCursor& random) {
            return std::exp(0.3 * (a + b)) * std::abs(random.Normal());
          },
          std::sqrt(2 / M_PI) * std::exp(0.09),
          {}};
}
PairLaw LognormalPairs() {
  return {"lognormal",
          [](double, double, RandomCursor& random) { return std::exp(2 * random.Normal()); },
          std::exp(2.0),
          {}};
}
// The logarithm of an error is the sum of three normal numbers, so its variance is 3.
PairLaw StrongRows() {
  return {
      "strong rows",
      [](double a, double b, RandomCursor& random) { return std::exp(a + b + random.Normal()); },
      std::exp(1.5), [](double e) { return Upper(std::log(e) / std::sqrt(3.0)); }};
}
// One row in 20 is in the cluster, because 1.644854 is the .95 quantile of the normal distribution.
PairLaw Cluster() {
  return {"cluster",
          [](double a, double b, RandomCursor& random) {
            return std::max(a, b) > 1.6448536 ? std::abs(random.Normal()) : 0;
          },
          0.0975 * std::sqrt(2 / M_PI), [](double e) { return 0.0975 * 2 * Upper(e); }};
}

// Draws the errors of pairs under `law`. Each row is paired with all rows before it in its own
// block of 128 and in the block before.
RowErrors DrawPairs(const PairLaw& law, int64_t rows, RandomCursor& random) {
  std::vector<double> traits;
  for (int64_t i = 0; i < rows; ++i) traits.push_back(random.Normal());
  RowErrors errors(rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = std::max<int64_t>(0, i / 128 * 128 - 128); j < i; ++j) {
      const double error = law.error(traits[i], traits[j], random);
      for (const int64_t row : {i, j}) {
        errors.sums[row] += error;
        ++errors.counts[row];
      }
    }
  }
  return errors;
}

double MeanOf(const RowErrors& errors) {
  double sum = 0;
  double count = 0;
  for (const double row : errors.sums) sum += row;
  for (const int64_t row : errors.counts) count += static_cast<double>(row);
  return sum / count;
}

// The results of a simulation. `covers` is the share of draws whose interval contains the mean of
// the law. `narrow_covers` is the same share for an interval that is 2.5 times narrower on the
// logarithmic scale. `width` is the mean width of the intervals, divided by the smallest possible
// width. This smallest width is that of the central 95 % of the means of such draws.
struct IntervalRecord {
  double covers = 0;
  double narrow_covers = 0;
  double width = 0;
};
IntervalRecord Simulate(const PairLaw& law, int64_t rows, int draws) {
  RandomCursor random(RandomStream(11, StreamId::kProjection));
  std::vector<double> means;
  IntervalRecord record;
  for (int draw = 0; draw < draws; ++draw) {
    const RowErrors errors = DrawPairs(law, rows, random);
    const double mean = MeanOf(errors);
    means.push_back(mean);
    const std::optional<MeanInterval> interval = JackknifeInterval(errors);
    if (!interval.has_value()) continue;
    EXPECT_LT(interval->low, mean);
    EXPECT_GT(interval->high, mean);
    record.covers += interval->low <= law.mean && law.mean <= interval->high ? 1.0 / draws : 0;
    const double half = std::log(interval->high / mean) / 2.5;
    record.narrow_covers += std::abs(std::log(law.mean / mean)) <= half ? 1.0 / draws : 0;
    record.width += (interval->high - interval->low) / draws;
  }
  // More means make their quantiles more accurate.
  while (means.size() < 2000) means.push_back(MeanOf(DrawPairs(law, rows, random)));
  std::sort(means.begin(), means.end());
  const auto count = static_cast<double>(means.size());
  record.width /=
      means[static_cast<size_t>(0.975 * count)] - means[static_cast<size_t>(0.025 * count)];
  return record;
}

TEST(PairErrorTest, TheIntervalCoversOrdinaryAndLognormalErrorsAndIsNotMuchWiderThanItMustBe) {
  for (const PairLaw& law : {ModeratePairs(), ModerateRows(), LognormalPairs()}) {
    for (const int64_t rows : {20, 40, 200}) {
      SCOPED_TRACE(law.name + " of " + std::to_string(rows));
      const IntervalRecord record = Simulate(law, rows, 1000);
      EXPECT_GE(record.covers, 0.93);
      EXPECT_LE(record.width, 1.7);
      // Checks that the test can fail: an interval that is 2.5 times narrower must miss the mean
      // too often.
      EXPECT_LT(record.narrow_covers, 0.9);
      EXPECT_GT(record.width, 0.9);
    }
  }
}

// Shows why the interval is called approximate, and why the bound is reported beside it.
TEST(PairErrorTest, TheIntervalOfFewRowsMissesRareRowsAndStrongOnes) {
  EXPECT_LT(Simulate(Cluster(), 20, 1000).covers, 0.7);
  EXPECT_LT(Simulate(StrongRows(), 20, 1000).covers, 0.93);
}

// A bound states that at most a certain share of all pairs have an error larger than the largest
// error of the draw. For a continuous law, this statement is true in exactly 95 % of draws. Three
// standard deviations for 10,000 draws are .0065. With a share that is 2.5 times smaller, the
// statement must be true in fewer draws.
TEST(PairErrorTest, TheBoundHoldsWhereTheIntervalCannotAndASmallerOneDoesNot) {
  constexpr int kDraws = 10'000;
  constexpr double kLeast = 0.95 - 0.0065;
  for (const PairLaw& law : {Cluster(), StrongRows()}) {
    for (const int pairs : {10, 100}) {
      SCOPED_TRACE(law.name + " of " + std::to_string(pairs));
      RandomCursor random(RandomStream(12, StreamId::kProjection));
      int holds = 0;
      int smaller_holds = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        std::vector<double> errors;
        for (int n = 0; n < pairs; ++n) {
          const double a = random.Normal();
          errors.push_back(law.error(a, random.Normal(), random));
        }
        const PairBound bound = BoundPairs(errors);
        EXPECT_EQ(bound.pairs, pairs);
        const double share = law.share(bound.largest);
        holds += share <= bound.share ? 1 : 0;
        smaller_holds += share <= bound.share / 2.5 ? 1 : 0;
      }
      EXPECT_GE(holds, kLeast * kDraws);
      // For ten pairs under the law "cluster", the smaller share is .26/2.5. It exceeds the share
      // of pairs that have any error at all, so the bound is still true.
      if (law.name == "cluster" && pairs == 10) continue;
      EXPECT_LT(smaller_holds, 0.8 * kDraws);
    }
  }
}

TEST(PairErrorTest, TheShareIsThatOfTheRuleOfThree) {
  EXPECT_NEAR(BoundPairs(std::vector<double>(10, 1)).share, 0.258866, 1e-6);
  EXPECT_NEAR(BoundPairs(std::vector<double>(1000, 1)).share, 0.00299125, 1e-8);
  EXPECT_EQ(BoundPairs({0.5, 2, 1}).largest, 2);
}

// All pairs of 20 rows. Pairs with row 0 have the error 10, all other pairs the error 1. The mean
// of all errors is 1.9. Without row 0 the mean is 1, and without any one of the other rows it is
// 333/171. The .975 quantile of Student's distribution with 9 degrees of freedom is 2.262157.
TEST(PairErrorTest, TheJackknifeLeavesOutRowsAndNotPairs) {
  RowErrors errors(20);
  for (int64_t i = 0; i < 20; ++i) {
    errors.counts[i] = 19;
    errors.sums[i] = i == 0 ? 190 : 28;
  }
  const std::optional<MeanInterval> interval = JackknifeInterval(errors);
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, 0.68664, 2e-3 * 0.68664);
  EXPECT_NEAR(interval->high, 5.25745, 2e-3 * 5.25745);
}

TEST(PairErrorTest, ErrorsThatAreAllZeroOrNotFiniteHaveNoInterval) {
  RowErrors errors(20);
  errors.counts.assign(20, 19);
  EXPECT_FALSE(JackknifeInterval(errors).has_value());
  EXPECT_EQ(BoundPairs({0, 0, 0}).largest, 0);
  errors.sums.assign(20, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(JackknifeInterval(errors).has_value());
  errors.sums.assign(20, 19e300);
  EXPECT_FALSE(JackknifeInterval(errors).has_value() &&
               !std::isfinite(JackknifeInterval(errors)->high));
}

// (Σa)²/Σa² of n equal numbers is n, and of one number among zeros 1.
TEST(EffectiveCountTest, IsTheNumberOfNumbersThatCarryTheSum) {
  EXPECT_DOUBLE_EQ(EffectiveCount({3, 3, 3, 3, 3}), 5);
  EXPECT_DOUBLE_EQ(EffectiveCount({0, 0, 7, 0}), 1);
  EXPECT_DOUBLE_EQ(EffectiveCount({1, 2, 3}), 36.0 / 14);
  EXPECT_DOUBLE_EQ(EffectiveCount({1e200, 2e200, 3e200}), 36.0 / 14);
  EXPECT_EQ(EffectiveCount({0, 0}), 0);
  EXPECT_EQ(EffectiveCount({}), 0);
}

// Residuals are a share, uniform in (0, 1), of values that are lognormal, so the ratio of the means
// is 1/2. Of 1,000 samples at least 909 must cover it: six deviations (√(1000·.05·.95) = 6.9)
// under 950. An interval of a third of the width covers about half of them.
TEST(RatioIntervalTest, CoversTheRatioOfMeansAndAThirdOfItsWidthDoesNot) {
  RandomCursor random(RandomStream(11, StreamId::kLabRows));
  int covered = 0;
  int covered_by_third = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    std::vector<double> residuals, values;
    for (int i = 0; i < 200; ++i) {
      values.push_back(std::exp(0.5 * random.Normal()));
      residuals.push_back(values.back() * random.UniformOpen01());
    }
    const std::optional<MeanInterval> interval = RatioInterval(residuals, values, 50);
    ASSERT_TRUE(interval.has_value());
    covered += interval->low <= 0.5 && 0.5 <= interval->high ? 1 : 0;
    const double middle = std::sqrt(interval->low * interval->high);
    const double third = std::cbrt(interval->high / middle);
    covered_by_third += middle / third <= 0.5 && 0.5 <= middle * third ? 1 : 0;
  }
  EXPECT_GE(covered, 909);
  EXPECT_LT(covered_by_third, 909);
}

// Of 1,000 rows four are isolated outliers with the residual 1, all others have .001 in the mean.
// One sample in eleven has no such row, and only those state an interval.
TEST(RatioIntervalTest, AllowsForRowsOfAKindThatWasNotDrawn) {
  RandomCursor random(RandomStream(12, StreamId::kLabRows));
  constexpr double kOutliers = 0.004, kResidual = 0.001;
  constexpr double kTruth = kOutliers + (1 - kOutliers) * kResidual;
  const std::vector<double> values(600, 1.0);
  int stated = 0, covered = 0, covered_by_third = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    std::vector<double> residuals;
    for (int i = 0; i < 600; ++i) {
      const bool is_outlier = random.UniformOpen01() < kOutliers;
      residuals.push_back(is_outlier ? 1 : 2 * kResidual * random.UniformOpen01());
    }
    const std::optional<MeanInterval> interval = RatioInterval(residuals, values, 30);
    if (!interval.has_value()) continue;
    ++stated;
    covered += interval->low <= kTruth && kTruth <= interval->high ? 1 : 0;
    covered_by_third += kTruth <= kResidual + (interval->high - kResidual) / 3 ? 1 : 0;
  }
  EXPECT_NEAR(stated, 1000 * std::pow(1 - kOutliers, 600), 54);  // six deviations
  EXPECT_EQ(covered, stated);
  EXPECT_EQ(covered_by_third, 0);
}

TEST(RatioIntervalTest, StatesNothingWhereFewRowsCarryTheSums) {
  std::vector<double> values(200, 1.0), residuals(200, 0.1);
  EXPECT_TRUE(RatioInterval(residuals, values, 50).has_value());
  values[0] = 1e4;
  EXPECT_FALSE(RatioInterval(residuals, values, 50).has_value());
  values[0] = 1;
  residuals[0] = 1e4;
  EXPECT_FALSE(RatioInterval(residuals, values, 50).has_value());
  EXPECT_FALSE(RatioInterval(std::vector<double>(200, 0.0), values, 50).has_value());
}

}  // namespace
}  // namespace phimap::testing
