#include "core/head/link.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

struct ScoredRows {
  Matrix<double> scores;
  std::vector<int32_t> labels;
  int32_t classes = 2;
};

// N(0, 1) scores in two classes; class 1 has the probability 1/(1 + exp(−slope·s − offset)).
ScoredRows TwoClasses(int64_t n, double slope, double offset, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  ScoredRows rows{.scores = Matrix<double>(n, 1), .labels = {}};
  for (int64_t i = 0; i < n; ++i) {
    rows.scores(i, 0) = random.Normal();
    const double p = 1 / (1 + std::exp(-slope * rows.scores(i, 0) - offset));
    rows.labels.push_back(random.UniformOpen01() < p ? 1 : 0);
  }
  return rows;
}

// N(0, 1) scores of `classes` classes, of which j has a probability proportional to exp(slope·s_j).
ScoredRows ManyClasses(int64_t n, int32_t classes, double slope, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  ScoredRows rows{.scores = Matrix<double>(n, classes), .labels = {}, .classes = classes};
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int32_t j = 0; j < classes; ++j) {
      rows.scores(i, j) = random.Normal();
      sum += std::exp(slope * rows.scores(i, j));
    }
    double left = random.UniformOpen01() * sum;
    int32_t label = 0;
    while (label + 1 < classes && left > std::exp(slope * rows.scores(i, label))) {
      left -= std::exp(slope * rows.scores(i, label++));
    }
    rows.labels.push_back(label);
  }
  return rows;
}

Link Fit(const ScoredRows& rows) { return FitLink(rows.scores.view(), rows.labels, rows.classes); }

// The target of class j in row i, by the definition in link.h.
long double Target(const ScoredRows& rows, size_t i, int32_t j) {
  const auto n = static_cast<long double>(rows.labels.size());
  if (rows.classes == 2) {
    const auto own =
        static_cast<long double>(std::count(rows.labels.begin(), rows.labels.end(), j));
    return rows.labels[i] == j ? (own + 1) / (own + 2) : 1 / (n - own + 2);
  }
  return rows.labels[i] == j ? (n + 1) / (n + 2) : 1 / (n + 2) / (rows.classes - 1);
}

// The probabilities of row i by the formulas themselves, in 64 bits of mantissa.
std::vector<long double> NaiveProbabilities(const ScoredRows& rows, int64_t i, const Link& link) {
  std::vector<long double> p;
  if (rows.classes == 2) {
    const long double z = static_cast<long double>(link.slope) * rows.scores(i, 0) + link.offset;
    return {1 / (1 + std::exp(z)), 1 / (1 + std::exp(-z))};
  }
  long double sum = 0;
  const double* row = rows.scores.row(i);
  const double top = *std::max_element(row, row + rows.classes);
  for (int32_t j = 0; j < rows.classes; ++j) {
    p.push_back(std::exp(link.slope * (static_cast<long double>(row[j]) - top)));
    sum += p.back();
  }
  for (long double& value : p) value /= sum;
  return p;
}

// The two means that are 0 at the minimum of the loss, for which the loss, being convex, has no
// other point: of p − t over rows (two classes), and of (p − t)·s, over the scores' spread.
struct Gradient {
  double constant = 0;
  double score = 0;
};
Gradient GradientAt(const ScoredRows& rows, const Link& link, double spread) {
  long double constant = 0;
  long double score = 0;
  for (int64_t i = 0; i < rows.scores.rows(); ++i) {
    const std::vector<long double> p = NaiveProbabilities(rows, i, link);
    for (int32_t j = 0; j < rows.classes; ++j) {
      if (rows.classes == 2 && j == 0) continue;
      const long double miss = p[static_cast<size_t>(j)] - Target(rows, static_cast<size_t>(i), j);
      constant += miss;
      score += miss * (rows.classes == 2 ? rows.scores(i, 0) : rows.scores(i, j)) / spread;
    }
  }
  const auto n = static_cast<long double>(rows.scores.rows());
  return {static_cast<double>(constant / n), static_cast<double>(score / n)};
}

// The bound of link.h. A link that is a thousandth off is far over it.
constexpr double kZero = 1e-9;

TEST(LinkTest, PlattsLossHasNoSlopeAtTheFit) {
  for (const double unit : {1.0, 1e-8, 1e9}) {
    for (const double slope : {0.3, 4.0, 40.0}) {
      SCOPED_TRACE(::testing::Message() << "unit " << unit << ", slope " << slope);
      ScoredRows rows = TwoClasses(2000, slope, -0.5, 3);
      for (int64_t i = 0; i < 2000; ++i) rows.scores(i, 0) *= unit;
      Link link = Fit(rows);
      ASSERT_EQ(link.kind, Link::Kind::kPlatt);
      const Gradient zero = GradientAt(rows, link, unit);
      EXPECT_LT(std::abs(zero.constant), kZero);
      EXPECT_LT(std::abs(zero.score), kZero);
      link.slope *= 1.001;
      EXPECT_GT(std::abs(GradientAt(rows, link, unit).score), 100 * kZero);
    }
  }
}

TEST(LinkTest, TheTemperaturesLossHasNoSlopeAtTheFit) {
  for (const double unit : {1.0, 1e-8, 1e9}) {
    for (const int32_t classes : {3, 26}) {
      SCOPED_TRACE(::testing::Message() << "unit " << unit << ", classes " << classes);
      ScoredRows rows = ManyClasses(1000, classes, 2.5, 4);
      for (int64_t k = 0; k < rows.scores.size(); ++k) rows.scores.data()[k] *= unit;
      Link link = Fit(rows);
      ASSERT_EQ(link.kind, Link::Kind::kTemperature);
      EXPECT_EQ(link.offset, 0);
      EXPECT_LT(std::abs(GradientAt(rows, link, unit).score), kZero);
      link.slope *= 1.001;
      EXPECT_GT(std::abs(GradientAt(rows, link, unit).score), 100 * kZero);
    }
  }
}

// The variance of an estimate by maximum likelihood is at least 1/(n·I); for slope 2 and 20,000
// rows the information of one row about the slope is the mean of p(1 − p)s², about .1, so that one
// deviation is about .022. Six deviations.
TEST(LinkTest, FindsTheLinkThatLabelsWereDrawnBy) {
  const Link platt = Fit(TwoClasses(20'000, 2, -0.7, 5));
  EXPECT_NEAR(platt.slope, 2, 6 * 0.035);
  EXPECT_NEAR(platt.offset, -0.7, 6 * 0.025);
  // A row of ten classes says more about the slope than one of two.
  const Link temperature = Fit(ManyClasses(20'000, 10, 2, 6));
  EXPECT_NEAR(temperature.slope, 2, 6 * 0.022);
}

TEST(LinkTest, ASlopeIsInUnitsOfTheScores) {
  const ScoredRows rows = TwoClasses(500, 3, 0.25, 7);
  ScoredRows other = TwoClasses(500, 3, 0.25, 7);
  for (int64_t i = 0; i < 500; ++i) other.scores(i, 0) = 64 * other.scores(i, 0) + 128;
  const Link link = Fit(rows);
  const Link moved = Fit(other);
  EXPECT_NEAR(64 * moved.slope / link.slope, 1, 1e-8);
  EXPECT_NEAR(moved.offset, link.offset - 128 * moved.slope, 1e-7);
}

TEST(LinkTest, ScoresThatPreferTheWrongClassKeepTheirOrder) {
  for (const int32_t classes : {2, 4}) {
    ScoredRows rows = classes == 2 ? TwoClasses(300, -3, 0, 8) : ManyClasses(300, 4, -3, 8);
    const Link link = Fit(rows);
    EXPECT_GT(link.slope, 0);
    // Hardly any confidence is left: the scores are within ±5, so p differs by 1e-5 at most.
    const Gradient gradient = GradientAt(rows, link, 1);
    EXPECT_GT(gradient.score, 0.1);
    if (classes == 2) {
      EXPECT_LT(std::abs(gradient.constant), kZero);
    }
  }
}

// Without Platt's targets the slope would be infinite. With them the highest probability is close
// to that of the targets, 51/52, at the scores ±1 of all rows exactly.
TEST(LinkTest, ScoresWithoutAnErrorGetTheProbabilitiesOfTheTargets) {
  ScoredRows rows{.scores = Matrix<double>(100, 1), .labels = {}};
  for (int64_t i = 0; i < 100; ++i) {
    rows.labels.push_back(static_cast<int32_t>(i % 2));
    rows.scores(i, 0) = i % 2 == 1 ? 1 : -1;
  }
  const Link link = Fit(rows);
  double p[2];
  Probabilities(link, {rows.scores.row(1), 1}, p);
  EXPECT_NEAR(p[1], 51.0 / 52, 1e-9);
  EXPECT_NEAR(p[0] + p[1], 1, 1e-15);

  ScoredRows three{.scores = Matrix<double>(99, 3), .labels = {}, .classes = 3};
  for (int64_t i = 0; i < 99; ++i) {
    three.labels.push_back(static_cast<int32_t>(i % 3));
    three.scores(i, i % 3) = 1e-3;
  }
  double q[3];
  Probabilities(Fit(three), {three.scores.row(0), 3}, q);
  EXPECT_NEAR(q[0], 100.0 / 101, 1e-9);
  EXPECT_NEAR(q[1], 0.5 / 101, 1e-9);
}

TEST(LinkTest, ScoresThatSayNothingGiveTheShares) {
  for (const double score : {0.0, -3.5, 1e300}) {
    SCOPED_TRACE(score);
    ScoredRows rows{.scores = Matrix<double>(10, 1), .labels = std::vector<int32_t>(10)};
    for (int64_t i = 0; i < 10; ++i) rows.scores(i, 0) = score;
    for (size_t i = 0; i < 3; ++i) rows.labels[i] = 1;
    const Link link = Fit(rows);
    EXPECT_GT(link.slope, 0);
    double p[2];
    Probabilities(link, {&score, 1}, p);
    // Three targets of 4/5 and seven of 1/9.
    EXPECT_NEAR(p[1], (3 * 0.8 + 7.0 / 9) / 10, 1e-12);
  }
  ScoredRows rows{.scores = Matrix<double>(5, 4), .labels = {0, 1, 2, 3, 0}, .classes = 4};
  double p[4];
  Probabilities(Fit(rows), {rows.scores.row(0), 4}, p);
  EXPECT_THAT(p, Each(0.25));
}

TEST(LinkTest, OneClassAloneAndOneRowAloneAreFitted) {
  for (const int32_t label : {0, 1}) {
    ScoredRows rows = TwoClasses(50, 1, 0, 9);
    std::fill(rows.labels.begin(), rows.labels.end(), label);
    const Link link = Fit(rows);
    double p[2];
    Probabilities(link, {rows.scores.row(0), 1}, p);
    EXPECT_NEAR(p[label], 51.0 / 52, 1e-5);
  }
  const double score = 2;
  const int32_t label = 1;
  const Link link = FitLink({&score, 1, 1}, {&label, 1}, 2);
  double p[2];
  Probabilities(link, {&score, 1}, p);
  EXPECT_NEAR(p[1], 2.0 / 3, 1e-12);
}

TEST(LinkTest, ScoresOfAnySizeGiveAFiniteLink) {
  for (const double unit : {1e-320, 1e-200, 1e200, 1e307}) {
    SCOPED_TRACE(unit);
    ScoredRows two = TwoClasses(200, 2, 0.5, 10);
    ScoredRows many = ManyClasses(200, 3, 2, 10);
    for (ScoredRows* rows : {&two, &many}) {
      for (int64_t k = 0; k < rows->scores.size(); ++k) rows->scores.data()[k] *= unit;
      const Link link = Fit(*rows);
      EXPECT_TRUE(std::isfinite(link.slope) && link.slope > 0) << link.slope;
      EXPECT_TRUE(std::isfinite(link.offset)) << link.offset;
    }
  }
}

TEST(LinkTest, ProbabilitiesFollowTheFormulas) {
  const Link platt{Link::Kind::kPlatt, 1.5, -0.25};
  const Link temperature{Link::Kind::kTemperature, 1.5, 0};
  ScoredRows two = TwoClasses(500, 1, 0, 11);
  ScoredRows many = ManyClasses(500, 7, 1, 11);
  for (int64_t i = 0; i < 500; ++i) {
    two.scores(i, 0) *= 20;
    double p[7];
    Probabilities(platt, {two.scores.row(i), 1}, {p, 2});
    const auto naive = NaiveProbabilities(two, i, platt);
    // A few roundings, relative to each probability, and the argument's own rounding, which is 40
    // times 1e-16.
    for (size_t j : {0, 1}) EXPECT_NEAR(p[j] / static_cast<double>(naive[j]), 1, 2e-14);
    Probabilities(temperature, {many.scores.row(i), 7}, {p, 7});
    const auto other = NaiveProbabilities(many, i, temperature);
    for (size_t j = 0; j < 7; ++j) {
      EXPECT_NEAR(p[j] / static_cast<double>(other[j]), 1, 2e-14);
    }
  }
}

TEST(LinkTest, NoFiniteScoreGivesANumberThatIsNone) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const double values[] = {-kMost, -1e10, -0.0, 5e-324, 1, kMost};
  for (const double slope : {1e-300, 1.0, 1e300}) {
    for (const double a : values) {
      double p[3];
      Probabilities({Link::Kind::kPlatt, slope, 2}, {&a, 1}, {p, 2});
      EXPECT_NEAR(p[0] + p[1], 1, 1e-15) << slope << " " << a;
      for (const double b : values) {
        const double scores[] = {a, b, 0};
        Probabilities({Link::Kind::kTemperature, slope, 0}, scores, p);
        EXPECT_NEAR(p[0] + p[1] + p[2], 1, 4e-16) << slope << " " << a << " " << b;
      }
    }
  }
}

}  // namespace
}  // namespace phimap::testing
