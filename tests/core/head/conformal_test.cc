#include "core/head/conformal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/random/stream_ids.h"
#include "core/theory/binomial.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

std::vector<double> SortedUniforms(int64_t n, RandomCursor& random) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(random.UniformOpen01());
  std::sort(values.begin(), values.end());
  return values;
}

// ⌈(n + 1)·j/1000⌉ in whole numbers.
TEST(ConformalTest, TheRankOfADecimalConfidenceIsExact) {
  for (int64_t n = 0; n <= 2500; ++n) {
    for (int64_t j = 1; j < 1000; ++j) {
      ASSERT_EQ(ConformalRank(n, static_cast<double>(j) / 1000), ((n + 1) * j + 999) / 1000)
          << n << " rows, " << j << "/1000";
    }
  }
  EXPECT_EQ(ConformalRank(1'000'000'000, 0.999999), 999'999'001);
}

// By the definition: the least score that, with those up to it, is at least a share c of the n + 1
// places.
TEST(ConformalTest, TheThresholdIsTheLeastThatHoldsEnoughRows) {
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  for (const int64_t n : {0, 1, 4, 9, 19, 20, 99, 100, 501}) {
    // A fifth of the values, so that there are ties.
    std::vector<double> scores = SortedUniforms(n, random);
    for (double& score : scores) score = std::floor(score * static_cast<double>(n) / 5);
    const ConformalPredictor predictor({.scores = scores, .classes = {}}, 0);
    EXPECT_EQ(predictor.rows(), n);
    EXPECT_FALSE(predictor.class_conditional());
    for (const double confidence : {0.5, 0.8, 0.9, 0.95, 0.99}) {
      SCOPED_TRACE(::testing::Message() << n << " rows at " << confidence);
      std::optional<double> expected;
      for (const double score : scores) {
        const auto up_to =
            std::count_if(scores.begin(), scores.end(), [&](double s) { return s <= score; });
        // The tolerance of the rank.
        if (static_cast<double>(up_to) >= confidence * static_cast<double>(n + 1) - 1e-9) {
          expected = score;
          break;
        }
      }
      EXPECT_EQ(predictor.Threshold(confidence), expected);
    }
  }
}

TEST(ConformalTest, NineteenRowsAreTheFewestForNinetyFivePercent) {
  RandomCursor random(RandomStream(2, StreamId::kLabRows));
  EXPECT_FALSE(ConformalPredictor({SortedUniforms(18, random), {}}, 0).Threshold(0.95).has_value());
  EXPECT_TRUE(ConformalPredictor({SortedUniforms(19, random), {}}, 0).Threshold(0.95).has_value());
}

// Scores of `rows_of_last` rows of the last of three classes and 60 of each other.
CalibrationScores ThreeClasses(int64_t rows_of_last) {
  RandomCursor random(RandomStream(3, StreamId::kLabRows));
  CalibrationScores calibration{.scores = SortedUniforms(120 + rows_of_last, random),
                                .classes = {}};
  for (int64_t i = 0; i < 120 + rows_of_last; ++i) {
    calibration.classes.push_back(i < 120 ? static_cast<int32_t>(i % 2) : 2);
  }
  return calibration;
}

TEST(ConformalTest, ThresholdsAreOfClassesWhereEachHasFiftyRows) {
  for (const int64_t rows : {49, 50}) {
    const CalibrationScores calibration = ThreeClasses(rows);
    const ConformalPredictor predictor(calibration, 3);
    EXPECT_EQ(predictor.class_conditional(), rows == 50);
    for (const double confidence : {0.6, 0.9, 0.999}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows at " << confidence);
      const std::vector<double> thresholds = predictor.ClassThresholds(confidence);
      ASSERT_THAT(thresholds, SizeIs(3));
      for (int32_t c = 0; c < 3; ++c) {
        std::vector<double> own;
        for (size_t i = 0; i < calibration.scores.size(); ++i) {
          if (rows < 50 || calibration.classes[i] == c) own.push_back(calibration.scores[i]);
        }
        const std::optional<double> of_own =
            ConformalPredictor({.scores = own, .classes = {}}, 0).Threshold(confidence);
        EXPECT_EQ(thresholds[static_cast<size_t>(c)], of_own.value_or(kNone)) << c;
      }
    }
  }
}

TEST(ConformalTest, AClassThatNoRowHasLeavesThresholdsOfAllRows) {
  const ConformalPredictor predictor(ThreeClasses(50), 4);
  EXPECT_FALSE(predictor.class_conditional());
  EXPECT_THAT(predictor.ClassThresholds(0.9), ElementsAre(_, _, _, *predictor.Threshold(0.9)));
}

TEST(ConformalTest, ASetHasTheClassesUpToTheirThreshold) {
  std::vector<int32_t> set = {7};
  ConformalSet({0.5, 0.25, 0.25, 0}, {0.5, 0.75, 0.7499, kNone}, set);
  EXPECT_THAT(set, ElementsAre(7, 0, 1, 3));
  set.clear();
  ConformalSet({0.5, 0.5}, {0.25, 0.25}, set);
  EXPECT_THAT(set, IsEmpty());
}

TEST(ConformalTest, ScoresRiseAndKeepTheirClasses) {
  Matrix<double> probabilities(3, 2);
  const double rows[3][2] = {{0.25, 0.75}, {1.0 + 2e-16, 0}, {0.5, 0.5}};
  for (int64_t i = 0; i < 3; ++i) std::copy_n(rows[i], 2, probabilities.row(i));
  const CalibrationScores classes = ScoresOfClasses(probabilities.view(), {{0, 0, 1}});
  EXPECT_THAT(classes.scores, ElementsAre(0, 0.5, 0.75));
  EXPECT_THAT(classes.classes, ElementsAre(0, 1, 0));
  const CalibrationScores numbers = ScoresOfNumbers({{1, 2, 3}}, {{4, 1.5, 3}});
  EXPECT_THAT(numbers.scores, ElementsAre(0, 0.5, 3));
  EXPECT_THAT(numbers.classes, IsEmpty());
}

// Scores of a uniform law: its value at the threshold is the coverage itself, given the calibration
// rows. P[Beta(k, n + 1 − k) ≤ x] = P[Bin(n, x) ≥ k], so the latter is uniform over draws of the
// calibration rows. The test of Kolmogorov and Smirnov finds this: √m·D is over 2.5 with a
// probability of 2·exp(−2·2.5²) < 1e-5. It fails for another law, such as that of a threshold at a
// confidence that is .1 lower, or one place lower.
TEST(ConformalTest, CoverageHasTheBetaLaw) {
  constexpr int kDraws = 300;
  const auto distance = [](std::vector<double> uniforms) {
    std::sort(uniforms.begin(), uniforms.end());
    double largest = 0;
    const auto m = static_cast<double>(uniforms.size());
    for (size_t i = 0; i < uniforms.size(); ++i) {
      const auto place = static_cast<double>(i);
      largest = std::max({largest, uniforms[i] - place / m, (place + 1) / m - uniforms[i]});
    }
    return std::sqrt(m) * largest;
  };
  for (const int64_t n : {30, 400}) {
    for (const int64_t percent : {80, 90, 95}) {
      SCOPED_TRACE(::testing::Message() << n << " rows at " << percent << " %");
      const double confidence = static_cast<double>(percent) / 100;
      const int64_t k = ((n + 1) * percent + 99) / 100;
      std::vector<double> right, off;
      for (uint64_t draw = 0; draw < kDraws; ++draw) {
        RandomCursor random(RandomStream(1000 + draw, StreamId::kLabRows));
        const ConformalPredictor predictor({SortedUniforms(n, random), {}}, 0);
        right.push_back(1 - BinomialBelow(k, n, *predictor.Threshold(confidence)));
        off.push_back(1 - BinomialBelow(k, n, *predictor.Threshold(confidence - 0.1)));
      }
      EXPECT_LT(distance(right), 2.5);
      EXPECT_GT(distance(off), 2.5);
    }
  }
}

}  // namespace
}  // namespace phimap::testing
