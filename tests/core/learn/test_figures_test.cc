#include "core/learn/test_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "core/head/link.h"
#include "core/learn/evaluation.h"
#include "core/random/stream_ids.h"
#include "core/theory/binomial.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

struct TestedRows {
  Matrix<double> scores;
  Matrix<double> probabilities;
  std::vector<int32_t> labels;
  int32_t classes = 2;

  ClassAnswers answers() const {
    return {.scores = scores.view(),
            .probabilities = probabilities.view(),
            .labels = labels,
            .class_count = classes};
  }
};

// Scores in steps of a quarter, so that many are equal; the label has the highest score more often
// than not.
TestedRows DrawTested(int64_t n, int32_t classes, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  const int64_t scores = classes == 2 ? 1 : classes;
  TestedRows rows{.scores = Matrix<double>(n, scores),
                  .probabilities = Matrix<double>(n, classes),
                  .labels = {},
                  .classes = classes};
  // The offset leaves rows for whose answer the other class is more probable.
  const Link link{classes == 2 ? Link::Kind::kPlatt : Link::Kind::kTemperature, 1.5,
                  classes == 2 ? 0.75 : 0};
  for (int64_t i = 0; i < n; ++i) {
    const auto label = static_cast<int32_t>(random.UniformBelow(static_cast<uint64_t>(classes)));
    for (int64_t j = 0; j < scores; ++j) {
      const double own = scores == 1 ? 2 * label - 1 : (j == label ? 1.5 : 0);
      rows.scores(i, j) = std::round(4 * (own + random.Normal())) / 4;
    }
    rows.labels.push_back(label);
    Probabilities(link, {rows.scores.row(i), static_cast<size_t>(scores)},
                  {rows.probabilities.row(i), static_cast<size_t>(classes)});
  }
  return rows;
}

int32_t NaiveAnswer(const TestedRows& rows, int64_t i) {
  if (rows.classes == 2) return rows.scores(i, 0) > 0;
  int32_t best = 0;
  for (int32_t j = 1; j < rows.classes; ++j) {
    if (rows.scores(i, j) > rows.scores(i, best)) best = j;
  }
  return best;
}

TEST(TestFiguresTest, CountsAreThoseOfTheRows) {
  for (const int32_t classes : {2, 5}) {
    const TestedRows rows = DrawTested(700, classes, 1);
    const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
    EXPECT_EQ(figures.rows, 700);
    int64_t errors = 0;
    int64_t listed = 0;
    double recalls = 0;
    for (int32_t c = 0; c < classes; ++c) {
      int64_t actual = 0, predicted = 0, correct = 0;
      std::map<int32_t, int64_t> answered;
      for (int64_t i = 0; i < 700; ++i) {
        const int32_t answer = NaiveAnswer(rows, i);
        actual += rows.labels[i] == c;
        predicted += answer == c;
        correct += answer == c && rows.labels[i] == c;
        if (rows.labels[i] == c) ++answered[answer];
      }
      errors += actual - correct;
      recalls += static_cast<double>(correct) / static_cast<double>(actual);
      EXPECT_EQ(figures.classes[c], (ClassFigures::Class{actual, predicted, correct})) << c;
      for (const auto& [answer, count] : answered) {
        const ClassFigures::Confusion pair{c, answer, count};
        EXPECT_THAT(figures.confusion, Contains(pair));
        ++listed;
      }
    }
    EXPECT_EQ(static_cast<int64_t>(figures.confusion.size()), listed);
    EXPECT_TRUE(std::is_sorted(
        figures.confusion.begin(), figures.confusion.end(), [](const auto& a, const auto& b) {
          return std::pair(a.actual, a.predicted) < std::pair(b.actual, b.predicted);
        }));
    EXPECT_EQ(figures.errors, errors);
    EXPECT_EQ(figures.error.value, static_cast<double>(errors) / 700);
    const ProbabilityInterval interval = BinomialInterval(errors, 700, 0.9);
    EXPECT_EQ(figures.error.low, interval.low);
    EXPECT_EQ(figures.error.high, interval.high);
    EXPECT_NEAR(figures.balanced_accuracy, recalls / classes, 1e-14);
  }
}

TEST(TestFiguresTest, AClassWithoutTestRowsHasNoRecallToAverage) {
  TestedRows rows = DrawTested(50, 4, 2);
  for (int32_t& label : rows.labels) label = label == 3 ? 0 : label;
  const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
  double recalls = 0;
  for (int32_t c = 0; c < 3; ++c) {
    recalls += static_cast<double>(figures.classes[c].correct) /
               static_cast<double>(figures.classes[c].rows);
  }
  EXPECT_NEAR(figures.balanced_accuracy, recalls / 3, 1e-14);
}

// By the definition: over all pairs of a row of class 1 and one of class 0.
TEST(TestFiguresTest, TheAucIsTheShareOfPairsInTheRightOrder) {
  const TestedRows rows = DrawTested(400, 2, 3);
  const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
  double right = 0;
  double pairs = 0;
  for (size_t i = 0; i < 400; ++i) {
    for (size_t j = 0; j < 400; ++j) {
      if (rows.labels[i] != 1 || rows.labels[j] != 0) continue;
      const double a = rows.scores(static_cast<int64_t>(i), 0);
      const double b = rows.scores(static_cast<int64_t>(j), 0);
      right += a > b ? 1 : a == b ? 0.5 : 0;
      ++pairs;
    }
  }
  EXPECT_NEAR(figures.auc.value(), right / pairs, 1e-13);

  // The area under the points, from (0, 0), is the same.
  double area = 0;
  ClassFigures::RocPoint last;
  for (const ClassFigures::RocPoint& point : figures.roc) {
    area += (point.false_positives - last.false_positives) *
            (point.true_positives + last.true_positives) / 2;
    last = point;
    double called[2] = {};
    for (size_t i = 0; i < 400; ++i) {
      called[rows.labels[i]] += rows.scores(static_cast<int64_t>(i), 0) >= point.threshold;
    }
    EXPECT_NEAR(point.false_positives * static_cast<double>(figures.classes[0].rows), called[0],
                1e-9);
    EXPECT_NEAR(point.true_positives * static_cast<double>(figures.classes[1].rows), called[1],
                1e-9);
  }
  EXPECT_NEAR(area, *figures.auc, 1e-13);
  EXPECT_EQ(last.false_positives, 1);
  EXPECT_EQ(last.true_positives, 1);
}

TEST(TestFiguresTest, TheRocCurveHasABoundedNumberOfPoints) {
  TestedRows rows = DrawTested(5000, 2, 4);
  RandomCursor random(RandomStream(5, StreamId::kLabRows));
  for (int64_t i = 0; i < 5000; ++i) rows.scores(i, 0) += random.UniformOpen01() / 4;
  const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
  EXPECT_EQ(static_cast<int64_t>(figures.roc.size()), kMaxRocPoints);
  EXPECT_EQ(figures.roc.back().true_positives, 1);
  for (size_t k = 1; k < figures.roc.size(); ++k) {
    EXPECT_LT(figures.roc[k].threshold, figures.roc[k - 1].threshold);
    EXPECT_GE(figures.roc[k].true_positives, figures.roc[k - 1].true_positives);
  }
}

TEST(TestFiguresTest, OneClassAloneHasNoCurve) {
  TestedRows rows = DrawTested(20, 2, 6);
  std::fill(rows.labels.begin(), rows.labels.end(), 1);
  const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
  EXPECT_FALSE(figures.auc.has_value());
  EXPECT_THAT(figures.roc, IsEmpty());
  EXPECT_FALSE(MeasureClasses(DrawTested(20, 3, 6).answers(), 0.9).auc.has_value());
}

TEST(TestFiguresTest, LossesAndReliabilityFollowTheirDefinitions) {
  for (const int32_t classes : {2, 6}) {
    const TestedRows rows = DrawTested(900, classes, 7);
    const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
    double log_loss = 0;
    double brier = 0;
    std::map<int, std::array<double, 3>> bins;
    for (int64_t i = 0; i < 900; ++i) {
      const double confidence = rows.probabilities(i, NaiveAnswer(rows, i));
      for (int32_t j = 0; j < classes; ++j) {
        const double p = rows.probabilities(i, j);
        if (j == rows.labels[i]) log_loss -= std::log(p) / 900;
        // With two classes the Brier score is that of class 1 alone.
        if (classes > 2 || j == 1) brier += std::pow(p - (j == rows.labels[i]), 2) / 900;
      }
      auto& bin = bins[std::min(9, static_cast<int>(confidence * 10))];
      ++bin[0];
      bin[1] += NaiveAnswer(rows, i) == rows.labels[i];
      bin[2] += confidence;
    }
    EXPECT_NEAR(figures.log_loss.value(), log_loss, 1e-13);
    EXPECT_NEAR(figures.brier.value(), brier, 1e-13);
    ASSERT_EQ(figures.reliability.size(), bins.size());
    double calibration_error = 0;
    size_t k = 0;
    for (const auto& [index, bin] : bins) {
      EXPECT_EQ(figures.reliability[k].bin, index);
      EXPECT_EQ(static_cast<double>(figures.reliability[k].rows), bin[0]);
      EXPECT_EQ(static_cast<double>(figures.reliability[k].correct), bin[1]);
      EXPECT_NEAR(figures.reliability[k++].mean_confidence, bin[2] / bin[0], 1e-13);
      calibration_error += std::abs(bin[1] - bin[2]) / 900;
    }
    EXPECT_NEAR(figures.calibration_error.value(), calibration_error, 1e-13);
  }
}

TEST(TestFiguresTest, AProbabilityOfZeroHasABoundedLoss) {
  TestedRows rows = DrawTested(1, 2, 8);
  rows.labels[0] = 1;
  rows.probabilities(0, 0) = 1;
  rows.probabilities(0, 1) = 0;
  EXPECT_NEAR(MeasureClasses(rows.answers(), 0.9).log_loss.value(), 15 * std::log(10), 1e-12);
}

TEST(TestFiguresTest, WithoutALinkThereAreNoProbabilities) {
  TestedRows rows = DrawTested(30, 3, 9);
  rows.probabilities = Matrix<double>();
  const ClassFigures figures = MeasureClasses(rows.answers(), 0.9);
  EXPECT_FALSE(figures.log_loss || figures.brier || figures.calibration_error);
  EXPECT_THAT(figures.reliability, IsEmpty());
  EXPECT_THAT(figures.margins, IsEmpty());
}

// Margins by the definition of Balcan, Blum and Vempala, with an intercept as the weight of a
// constant feature.
TEST(TestFiguresTest, MarginsAreCosinesAndCertifiedOnTestRows) {
  constexpr int64_t kRows = 1000;
  const TestedRows rows = DrawTested(kRows, 2, 10);
  RandomCursor random(RandomStream(11, StreamId::kLabRows));
  const double norm = 2, intercept = 0.5, scale = 1.5, rounding = 1e-3;
  const Separators separators{.norms = {norm}, .intercepts = {intercept}, .intercept_scale = scale};
  std::vector<double> squared, self, roundings(kRows, rounding), margins, kernel;
  for (int64_t i = 0; i < kRows; ++i) {
    squared.push_back(4 + random.UniformOpen01());
    self.push_back(squared.back() + 1);
    const double y = rows.labels[i] == 1 ? 1 : -1;
    const double length = std::hypot(norm, intercept / scale);
    margins.push_back(y * rows.scores(i, 0) / (length * std::sqrt(squared[i] + scale * scale)));
    kernel.push_back(y * rows.scores(i, 0) / (length * std::sqrt(self[i] + scale * scale)) -
                     rounding * std::sqrt(self[i] / (self[i] + scale * scale)));
  }
  ClassAnswers answers = rows.answers();
  answers.separators = &separators;
  answers.squared_lengths = squared;
  answers.self_kernel = self;
  answers.rounding = roundings;
  const ClassFigures figures = MeasureClasses(answers, 0.95);
  std::sort(margins.begin(), margins.end());
  std::sort(kernel.begin(), kernel.end());
  EXPECT_EQ(figures.intercept_scale, scale);
  ASSERT_THAT(figures.margins, SizeIs(101));
  ASSERT_THAT(figures.kernel_margins, SizeIs(101));
  for (size_t q = 1; q <= 100; ++q) {
    EXPECT_NEAR(figures.margins[q], margins[10 * q - 1], 1e-12);
    EXPECT_NEAR(figures.kernel_margins[q], kernel[10 * q - 1], 1e-12);
  }
  ASSERT_EQ(figures.certified.size(), kCertifiedAlphas.size());
  for (size_t a = 0; a < figures.certified.size(); ++a) {
    const CertifiedTestMargin& certified = figures.certified[a];
    EXPECT_EQ(certified.alpha, kCertifiedAlphas[a]);
    const auto misses = static_cast<size_t>(std::llround(certified.alpha * kRows));
    EXPECT_NEAR(certified.rows_margin, kernel[misses], 1e-12);
    const int64_t rank = certified.alpha == 0 ? 0 : ConfidentRank(kRows, certified.alpha, 0.005);
    ASSERT_EQ(certified.margin.has_value(), rank > 0);
    if (rank > 0) {
      EXPECT_NEAR(*certified.margin, kernel[static_cast<size_t>(rank) - 1], 1e-12);
    }
  }
}

TEST(TestFiguresTest, NumbersFollowTheirDefinitions) {
  RandomCursor random(RandomStream(12, StreamId::kLabRows));
  std::vector<double> predicted, targets, deviations, residuals;
  double mean = 0;
  for (int i = 0; i < 300; ++i) {
    predicted.push_back(10 * random.Normal());
    targets.push_back(predicted.back() + random.Normal());
    deviations.push_back(0.5 + random.UniformOpen01());
    residuals.push_back(targets.back() - predicted.back());
    mean += targets.back() / 300;
  }
  double squares = 0, sizes = 0, spread = 0, standardised = 0;
  for (size_t i = 0; i < 300; ++i) {
    squares += residuals[i] * residuals[i];
    sizes += std::abs(residuals[i]);
    spread += (targets[i] - mean) * (targets[i] - mean);
    standardised += std::pow(residuals[i] / deviations[i], 2);
  }
  const NumberFigures figures = MeasureNumbers({predicted, targets, deviations}, 0.95);
  EXPECT_EQ(figures.rows, 300);
  EXPECT_NEAR(figures.rmse.value, std::sqrt(squares / 300), 1e-12);
  EXPECT_NEAR(figures.mae.value, sizes / 300, 1e-12);
  EXPECT_NEAR(figures.r_squared->value, 1 - squares / spread, 1e-12);
  EXPECT_NEAR(figures.standardised_error.value(), std::sqrt(standardised / 300), 1e-12);
  std::sort(residuals.begin(), residuals.end());
  ASSERT_THAT(figures.residuals, SizeIs(101));
  for (size_t q = 1; q <= 100; ++q) EXPECT_EQ(figures.residuals[q], residuals[3 * q - 1]);
  for (const Estimate& estimate : {figures.rmse, figures.mae, *figures.r_squared}) {
    EXPECT_LT(estimate.low, estimate.value);
    EXPECT_GT(estimate.high, estimate.value);
  }
  EXPECT_LT(figures.r_squared->high, 1);
}

// How often intervals cover what they estimate, over 2,000 draws of the test rows. The numbers come
// from the law: residuals of N(0, 1) have the RMSE 1 and the MAE √(2/π); targets are the residuals
// plus predictions of N(0, 4), so that R² is 1 − 1/5. 2,000 draws have a deviation of .006.
TEST(TestFiguresTest, IntervalsOfNumbersCoverAboutAsOftenAsStated) {
  constexpr int kDraws = 2000;
  const struct {
    int rows;
    double low, high;
  } cases[] = {{20, 0.9, 0.975}, {100, 0.93, 0.965}, {500, 0.935, 0.965}};
  for (const auto& c : cases) {
    int rmse = 0, mae = 0, r_squared = 0, off = 0;
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      RandomCursor random(RandomStream(20'000 + draw, StreamId::kLabRows));
      std::vector<double> predicted, targets;
      for (int i = 0; i < c.rows; ++i) {
        predicted.push_back(2 * random.Normal());
        targets.push_back(predicted.back() + random.Normal());
      }
      const NumberFigures figures = MeasureNumbers({predicted, targets, {}}, 0.95);
      const auto covers = [](const Estimate& estimate, double value) {
        return estimate.low <= value && value <= estimate.high;
      };
      rmse += covers(figures.rmse, 1);
      mae += covers(figures.mae, std::sqrt(2 / M_PI));
      r_squared += covers(*figures.r_squared, 0.8);
      off += covers(MeasureNumbers({predicted, targets, {}}, 0.8).rmse, 1);
    }
    for (const int covered : {rmse, mae, r_squared}) {
      EXPECT_GE(covered, c.low * kDraws) << c.rows;
      EXPECT_LE(covered, c.high * kDraws) << c.rows;
    }
    // An interval of another confidence does not pass for one.
    EXPECT_LT(off, c.low * kDraws);
    std::printf("%d rows: RMSE %.3f, MAE %.3f, R² %.3f of the intervals cover\n", c.rows,
                rmse / 2000.0, mae / 2000.0, r_squared / 2000.0);
  }
}

TEST(TestFiguresTest, NumbersAtTheirLimitsAreFinite) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const auto all_finite = [](const NumberFigures& figures) {
    for (const double number :
         {figures.rmse.value, figures.rmse.low, figures.rmse.high, figures.mae.value,
          figures.mae.low, figures.mae.high, figures.r_squared.value_or(Estimate()).value,
          figures.r_squared.value_or(Estimate()).low}) {
      EXPECT_TRUE(std::isfinite(number)) << number;
    }
  };
  // No error at all: the interval has no width.
  const NumberFigures exact = MeasureNumbers({{{1, 2, 4}}, {{1, 2, 4}}, {}}, 0.95);
  EXPECT_EQ(exact.rmse, (Estimate{0, 0, 0}));
  EXPECT_EQ(exact.r_squared.value(), (Estimate{1, 1, 1}));
  // One row: nothing is known of the spread.
  const NumberFigures one = MeasureNumbers({{{1}}, {{3}}, {}}, 0.95);
  EXPECT_EQ(one.mae, (Estimate{2, 0, kMost}));
  EXPECT_EQ(one.rmse, (Estimate{2, 0, kMost}));
  EXPECT_FALSE(one.r_squared.has_value());
  EXPECT_EQ(MeasureNumbers({{{1}}, {{1}}, {}}, 0.95).mae, (Estimate{0, 0, kMost}));
  // Equal targets.
  EXPECT_FALSE(MeasureNumbers({{{1, 2}}, {{3, 3}}, {}}, 0.95).r_squared.has_value());
  // Squares that are beyond the largest number, or under the smallest.
  for (const double unit : {1e-300, 1e300, kMost / 4}) {
    const double predicted[] = {unit, -unit, unit, 0};
    const double targets[] = {0, unit, unit, -2 * unit};
    const NumberFigures figures = MeasureNumbers({predicted, targets, {}}, 0.95);
    EXPECT_NEAR(figures.rmse.value / unit, 1.5, 1e-12);
    EXPECT_NEAR(figures.mae.value / unit, 1.25, 1e-12);
    all_finite(figures);
  }
  const double predicted[] = {kMost, -kMost, 1};
  const double targets[] = {-kMost, kMost, 2};
  all_finite(MeasureNumbers({predicted, targets, {}}, 0.95));
}

TEST(TestFiguresTest, CoverageCountsTheRowsWhoseSetsHoldTheTruth) {
  const TestedRows calibrating = DrawTested(300, 3, 13);
  const TestedRows tested = DrawTested(200, 3, 14);
  const ConformalPredictor predictor(
      ScoresOfClasses(calibrating.probabilities.view(), calibrating.labels), 3);
  ASSERT_TRUE(predictor.class_conditional());
  const double confidences[] = {0.8, 0.95, 0.9999};
  const std::vector<Coverage> coverage =
      MeasureSets(tested.probabilities.view(), tested.labels, predictor, confidences, 0.9);
  ASSERT_THAT(coverage, SizeIs(2));
  for (size_t k = 0; k < 2; ++k) {
    const std::vector<double> thresholds = predictor.ClassThresholds(confidences[k]);
    int64_t covered = 0;
    double classes = 0;
    for (int64_t i = 0; i < 200; ++i) {
      for (int32_t j = 0; j < 3; ++j) {
        const bool in = 1 - tested.probabilities(i, j) <= thresholds[j];
        classes += in;
        covered += in && j == tested.labels[i];
      }
    }
    EXPECT_EQ(coverage[k].confidence, confidences[k]);
    EXPECT_EQ(coverage[k].rows, 200);
    EXPECT_EQ(coverage[k].covered, covered);
    EXPECT_NEAR(coverage[k].mean_size, classes / 200, 1e-12);
    EXPECT_EQ(coverage[k].low, BinomialInterval(covered, 200, 0.9).low);
    EXPECT_EQ(coverage[k].high, BinomialInterval(covered, 200, 0.9).high);
  }

  const ConformalPredictor numbers({.scores = {1, 2, 3, 4}, .classes = {}}, 0);
  const double half[] = {0.5, 0.9};
  const ProbabilityInterval two_of_three = BinomialInterval(2, 3, 0.9);
  EXPECT_THAT(MeasureIntervals({{0, 0, 0}}, {{-3, 3.5, 1}}, numbers, half, 0.9),
              ElementsAre(Coverage{0.5, 3, 2, two_of_three.low, two_of_three.high, 6}));
}

}  // namespace
}  // namespace phimap::testing
