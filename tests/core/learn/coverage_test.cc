// Coverage of sets and intervals on data, over random splits into rows to learn from, to fit the
// link to, to calibrate sets on and to test on.
//
// The exact law. Let n rows calibrate and m rows test, with ties broken at random. Given all rows
// and the model, which of the n + m rows calibrate is a uniform choice, so the number of test rows
// that are covered has the law of Beta and binomial: m draws at a probability that is
// Beta(k, n + 1 − k). So its share has the mean μ = k/(n + 1), and the variance
// a·b·(a + b + m)/(m·(a + b)²·(a + b + 1)) with a = k, b = n + 1 − k, for any data and any model.
// Splits are independent draws of it, and so are the classes of a split, where thresholds are of
// classes. The sum of 300 has a skewness of .03 at most and is taken for normal: it is over five
// deviations with a probability of 1e-6.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/head/conformal.h"
#include "core/head/link.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr int kSplits = 300;

// Adds up how far shares of covered rows are from their means, and the variance of that.
struct CoverageSum {
  double deviation = 0;
  double variance = 0;
  double count = 0;

  void Add(int64_t covered, int64_t m, int64_t n, double confidence) {
    const auto a = static_cast<double>(
        std::llround(std::ceil(static_cast<double>(n + 1) * confidence - 1e-9)));
    const double b = static_cast<double>(n + 1) - a;
    const auto rows = static_cast<double>(m);
    deviation += static_cast<double>(covered) / rows - a / (a + b);
    variance += a * b * (a + b + rows) / (rows * (a + b) * (a + b) * (a + b + 1));
    ++count;
  }
  double Bound() const { return 5 * std::sqrt(variance); }
  bool Within() const { return std::abs(deviation) <= Bound(); }
};

// Rows of a split that calibrate or are tested: their nonconformity scores, their classes (0 for
// numbers), and a number each that decides ties.
struct SplitScores {
  std::vector<double> calibrating, testing;
  std::vector<int32_t> calibrating_classes, testing_classes;
  std::vector<double> calibrating_ties, testing_ties;
};

// Counts the tested rows of class `c` (−1: of all) that `threshold` covers. Among the rows that
// score exactly the threshold, those calibrating rows that are needed to make up `rank` rows are
// taken in the order of their numbers; a tested row is covered up to the number of the last.
struct Covered {
  int64_t calibrating = 0;
  int64_t tested = 0;
  int64_t covered = 0;
};
Covered CountCovered(const SplitScores& split, int32_t c, std::optional<double> threshold,
                     double confidence) {
  Covered count;
  int64_t under = 0;
  std::vector<double> ties;
  for (size_t i = 0; i < split.calibrating.size(); ++i) {
    if (c >= 0 && split.calibrating_classes[i] != c) continue;
    ++count.calibrating;
    under += split.calibrating[i] < *threshold;
    if (split.calibrating[i] == *threshold) ties.push_back(split.calibrating_ties[i]);
  }
  std::sort(ties.begin(), ties.end());
  const auto rank = static_cast<int64_t>(
      std::ceil(static_cast<double>(count.calibrating + 1) * confidence - 1e-9));
  EXPECT_TRUE(rank > under && rank - under <= static_cast<int64_t>(ties.size()));
  const double last = ties.at(static_cast<size_t>(rank - under - 1));
  for (size_t i = 0; i < split.testing.size(); ++i) {
    if (c >= 0 && split.testing_classes[i] != c) continue;
    ++count.tested;
    count.covered += split.testing[i] < *threshold ||
                     (split.testing[i] == *threshold && split.testing_ties[i] <= last);
  }
  return count;
}

ConformalPredictor PredictorOf(const SplitScores& split, int32_t class_count) {
  std::vector<std::pair<double, int32_t>> rows;
  for (size_t i = 0; i < split.calibrating.size(); ++i) {
    rows.emplace_back(split.calibrating[i], class_count > 0 ? split.calibrating_classes[i] : 0);
  }
  std::sort(rows.begin(), rows.end());
  CalibrationScores calibration;
  for (const auto& [score, label] : rows) {
    calibration.scores.push_back(score);
    if (class_count > 0) calibration.classes.push_back(label);
  }
  return ConformalPredictor(std::move(calibration), class_count);
}

std::vector<int64_t> Shuffled(int64_t n, uint64_t seed) {
  return FirstOfPermutation(n, n, RandomStream(seed, StreamId::kLabOrder));
}

struct SplitSizes {
  int64_t train, link, calibrate, test;
};

// A simple classifier: the score of a class is the distance of the row to the mean of the class's
// rows, squared and negative; of two classes the difference of the scores. Its link is fitted, and
// its nonconformity scores are those of conformal.h.
SplitScores ScoreSplit(const LabeledRows& data, const SplitSizes& sizes, uint64_t seed) {
  const std::vector<int64_t> order = Shuffled(data.rows.rows(), seed);
  const int64_t columns = data.rows.cols();
  Matrix<double> means(data.classes, columns);
  std::vector<double> counts(static_cast<size_t>(data.classes));
  for (int64_t i = 0; i < sizes.train; ++i) {
    const int32_t c = data.labels[order[i]];
    ++counts[c];
    for (int64_t j = 0; j < columns; ++j) means(c, j) += data.rows(order[i], j);
  }
  for (int32_t c = 0; c < data.classes; ++c) {
    for (int64_t j = 0; j < columns; ++j) means(c, j) /= std::max(counts[c], 1.0);
  }
  const int64_t scores = data.classes == 2 ? 1 : data.classes;
  const int64_t others = sizes.link + sizes.calibrate + sizes.test;
  Matrix<double> scored(others, scores);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < others; ++i) {
    const double* const row = data.rows.row(order[sizes.train + i]);
    labels.push_back(data.labels[order[sizes.train + i]]);
    std::vector<double> own(static_cast<size_t>(data.classes));
    for (int32_t c = 0; c < data.classes; ++c) {
      for (int64_t j = 0; j < columns; ++j) {
        own[c] -= (row[j] - means(c, j)) * (row[j] - means(c, j));
      }
    }
    for (int64_t j = 0; j < scores; ++j) scored(i, j) = scores == 1 ? own[1] - own[0] : own[j];
  }
  const Link link = FitLink(scored.view().Rows(0, sizes.link),
                            absl::MakeConstSpan(labels).first(sizes.link), data.classes);
  RandomCursor ties(RandomStream(seed, StreamId::kLabLabels));
  SplitScores split;
  std::vector<double> p(static_cast<size_t>(data.classes));
  for (int64_t i = sizes.link; i < others; ++i) {
    Probabilities(link, {scored.row(i), static_cast<size_t>(scores)}, absl::MakeSpan(p));
    const double score = 1 - p[labels[i]];
    const bool calibrates = i < sizes.link + sizes.calibrate;
    (calibrates ? split.calibrating : split.testing).push_back(score);
    (calibrates ? split.calibrating_classes : split.testing_classes).push_back(labels[i]);
    (calibrates ? split.calibrating_ties : split.testing_ties).push_back(ties.UniformOpen01());
  }
  return split;
}

// Friedman's first function (Multivariate adaptive regression splines, 1991) with noise 1, in rows
// of ten uniform columns and then the number.
Matrix<double> Friedman1(int64_t n, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  Matrix<double> rows(n, 11);
  for (int64_t i = 0; i < n; ++i) {
    double* const x = rows.row(i);
    for (int64_t j = 0; j < 10; ++j) x[j] = random.UniformOpen01();
    x[10] = 10 * std::sin(M_PI * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) + 10 * x[3] +
            5 * x[4] + random.Normal();
  }
  return rows;
}

// A simple regression: the mean of the numbers of the 5 nearest rows, of which only the columns
// that matter are looked at.
SplitScores ScoreNumberSplit(const Matrix<double>& data, const SplitSizes& sizes, uint64_t seed) {
  const std::vector<int64_t> order = Shuffled(data.rows(), seed);
  RandomCursor ties(RandomStream(seed, StreamId::kLabLabels));
  SplitScores split;
  for (int64_t i = 0; i < sizes.calibrate + sizes.test; ++i) {
    const double* const row = data.row(order[sizes.train + i]);
    std::vector<std::pair<double, double>> near;
    for (int64_t t = 0; t < sizes.train; ++t) {
      const double* const other = data.row(order[t]);
      double distance = 0;
      for (int64_t j = 0; j < 5; ++j) distance += (row[j] - other[j]) * (row[j] - other[j]);
      near.emplace_back(distance, other[10]);
    }
    std::partial_sort(near.begin(), near.begin() + 5, near.end());
    double mean = 0;
    for (int k = 0; k < 5; ++k) mean += near[k].second / 5;
    const bool calibrates = i < sizes.calibrate;
    (calibrates ? split.calibrating : split.testing).push_back(std::abs(row[10] - mean));
    (calibrates ? split.calibrating_ties : split.testing_ties).push_back(ties.UniformOpen01());
  }
  return split;
}

// The coverage of `splits` has the mean of the exact law at each confidence, and not that of a
// confidence that is .1 lower or .02 higher.
void ExpectExactCoverage(const std::vector<SplitScores>& splits) {
  for (const double confidence : {0.8, 0.9, 0.95}) {
    SCOPED_TRACE(confidence);
    CoverageSum right, lower, higher;
    for (const SplitScores& split : splits) {
      const ConformalPredictor predictor = PredictorOf(split, 0);
      for (const auto& [sum, at] : {std::pair(&right, confidence),
                                    {&lower, confidence - 0.1},
                                    {&higher, confidence + 0.02}}) {
        const Covered count = CountCovered(split, -1, predictor.Threshold(at), at);
        sum->Add(count.covered, count.tested, count.calibrating, confidence);
      }
    }
    EXPECT_TRUE(right.Within()) << right.deviation << " of " << right.Bound();
    EXPECT_FALSE(lower.Within()) << lower.deviation << " of " << lower.Bound();
    EXPECT_FALSE(higher.Within()) << higher.deviation << " of " << higher.Bound();
    std::printf("confidence %.2f: mean deviation of the coverage %+.5f, bound %.5f\n", confidence,
                right.deviation / right.count, right.Bound() / right.count);
  }
}

std::vector<SplitScores> Splits(const LabeledRows& data, const SplitSizes& sizes) {
  std::vector<SplitScores> splits;
  for (uint64_t seed = 0; seed < kSplits; ++seed) {
    splits.push_back(ScoreSplit(data, sizes, seed));
  }
  return splits;
}

TEST(CoverageTest, SetsOnSpamHoldTheTruthAsOftenAsStated) {
  const LabeledRows data = RealData("spam.csv");
  ExpectExactCoverage(Splits(data, {1500, 300, 500, data.rows.rows() - 2300}));
}

TEST(CoverageTest, IntervalsOnFriedman1HoldTheTruthAsOftenAsStated) {
  const Matrix<double> data = Friedman1(2000, 1);
  std::vector<SplitScores> splits;
  for (uint64_t seed = 0; seed < kSplits; ++seed) {
    splits.push_back(ScoreNumberSplit(data, {200, 0, 400, 1400}, seed));
  }
  ExpectExactCoverage(splits);
}

// Each of the 26 letters is covered as often as stated by its own threshold, and some are not by
// the threshold of all: those are the letters that are harder, and easier, to tell.
TEST(CoverageTest, SetsOnLetterHoldTheTruthInAllAndInEachClass) {
  const LabeledRows data = RealData("letter.csv");
  const std::vector<SplitScores> splits = Splits(data, {10'000, 300, 4000, 5700});
  ExpectExactCoverage(splits);
  for (const double confidence : {0.8, 0.9, 0.95}) {
    SCOPED_TRACE(confidence);
    CoverageSum all;
    std::vector<CoverageSum> own(26), common(26);
    for (const SplitScores& split : splits) {
      const ConformalPredictor predictor = PredictorOf(split, 26);
      ASSERT_TRUE(predictor.class_conditional());
      const std::vector<double> thresholds = predictor.ClassThresholds(confidence);
      const double of_all = *predictor.Threshold(confidence);
      for (int32_t c = 0; c < 26; ++c) {
        const Covered count = CountCovered(split, c, thresholds[c], confidence);
        own[c].Add(count.covered, count.tested, count.calibrating, confidence);
        all.Add(count.covered, count.tested, count.calibrating, confidence);
        int64_t covered = 0;
        for (size_t i = 0; i < split.testing.size(); ++i) {
          covered += split.testing_classes[i] == c && split.testing[i] <= of_all;
        }
        common[c].Add(covered, count.tested, count.calibrating, confidence);
      }
    }
    EXPECT_TRUE(all.Within()) << all.deviation << " of " << all.Bound();
    for (int32_t c = 0; c < 26; ++c) {
      EXPECT_TRUE(own[c].Within()) << c << ": " << own[c].deviation << " of " << own[c].Bound();
    }
    EXPECT_GT(std::count_if(common.begin(), common.end(),
                            [](const CoverageSum& sum) { return !sum.Within(); }),
              20);
  }
}

}  // namespace
}  // namespace phimap::testing
