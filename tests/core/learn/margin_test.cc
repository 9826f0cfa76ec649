#include "core/learn/margin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Vector = std::vector<double>;

Vector NormalVector(RandomCursor& random, int size) {
  Vector v(static_cast<size_t>(size));
  for (double& value : v) value = random.Normal();
  return v;
}

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double Cosine(const Vector& a, const Vector& b) {
  return Dot(a, b) / std::sqrt(Dot(a, a) * Dot(b, b));
}

Vector Appended(Vector v, double value) {
  v.push_back(value);
  return v;
}

// Returns the margin by the printed definitions, computed from the vectors themselves. With two
// classes there is a single vector.
double NaiveMargin(const std::vector<Vector>& w, const Vector& x, int label) {
  if (w.size() == 1) return (label == 1 ? 1 : -1) * Cosine(w[0], x);
  double rival = -2;
  for (size_t k = 0; k < w.size(); ++k) {
    if (static_cast<int>(k) != label) rival = std::max(rival, Cosine(w[k], x));
  }
  return Cosine(w[static_cast<size_t>(label)], x) - rival;
}

// What a learner with these vectors stores: the lengths of the vectors without their intercepts,
// and the scores with the intercepts.
struct Known {
  Separators separators;
  Vector scores;
};
Known KnownOf(const std::vector<Vector>& w, const Vector& intercepts, double scale,
              const Vector& x) {
  Known known;
  known.separators.intercepts = intercepts;
  known.separators.intercept_scale = scale;
  for (size_t k = 0; k < w.size(); ++k) {
    known.separators.norms.push_back(std::sqrt(Dot(w[k], w[k])));
    known.scores.push_back(Dot(w[k], x) + (intercepts.empty() ? 0 : intercepts[k]));
  }
  return known;
}

// Allows hundreds of roundings in products of some ten numbers of size 1.
constexpr double kRounding = 1e-13;

TEST(MarginTest, IsTheDefinitionForTwoClassesAndForMore) {
  RandomCursor random(RandomStream(1, StreamId::kProjection));
  for (const int classes : {2, 3, 7}) {
    const int vectors = classes == 2 ? 1 : classes;
    for (int trial = 0; trial < 50; ++trial) {
      std::vector<Vector> w;
      for (int k = 0; k < vectors; ++k) w.push_back(NormalVector(random, 5));
      const Vector x = NormalVector(random, 5);
      const Known known = KnownOf(w, {}, 1, x);
      const int label = trial % classes;
      const double expected = NaiveMargin(w, x, label);
      EXPECT_NEAR(NormalisedMargin(known.separators, known.scores, Dot(x, x), label), expected,
                  kRounding);
      // The unnormalised margin is divided only by the lengths of the separators. So it is the
      // normalised margin times the row's length.
      EXPECT_NEAR(UnnormalisedMargin(known.separators, known.scores, label),
                  expected * std::sqrt(Dot(x, x)), kRounding * 10);
    }
  }
}

// An intercept for the bias B is the weight of a constant feature B: the kernel of (φ, B) is K +
// B².
TEST(MarginTest, AnInterceptIsAConstantFeature) {
  RandomCursor random(RandomStream(2, StreamId::kProjection));
  for (const double scale : {0.5, 1.0, 30.0}) {
    for (const int vectors : {1, 4}) {
      std::vector<Vector> w;
      std::vector<Vector> augmented;
      const Vector intercepts = NormalVector(random, vectors);
      for (int k = 0; k < vectors; ++k) {
        w.push_back(NormalVector(random, 6));
        augmented.push_back(Appended(w.back(), intercepts[k] / scale));
      }
      const Vector x = NormalVector(random, 6);
      const Known known = KnownOf(w, intercepts, scale, x);
      for (int label = 0; label < std::max(2, vectors); ++label) {
        EXPECT_NEAR(NormalisedMargin(known.separators, known.scores, Dot(x, x), label),
                    NaiveMargin(augmented, Appended(x, scale), label), kRounding * 10);
      }
    }
  }
}

// φ is the feature map of the kernel (x·y)² in two dimensions. q is an orthonormal basis (by Gram
// and Schmidt) of the span of the φ of two landmarks, and F2(x) = q·φ(x). The test takes a vector w
// in F2-space. Its margin, divided by √K(x, x), must equal the margin of the vector Σ_i w_i q_i in
// φ-space, although ‖F2(x)‖ is less than ‖φ(x)‖.
TEST(MarginTest, OverTheKernelsOwnLengthItIsTheMarginInItsOwnSpace) {
  const auto phi = [](const Vector& x) {
    return Vector{x[0] * x[0], std::sqrt(2.0) * x[0] * x[1], x[1] * x[1]};
  };
  RandomCursor random(RandomStream(3, StreamId::kProjection));
  const Vector a = phi(NormalVector(random, 2));
  const Vector b = phi(NormalVector(random, 2));
  std::vector<Vector> q = {a, b};
  for (double& value : q[0]) value /= std::sqrt(Dot(a, a));
  const double along = Dot(q[0], b);
  for (int i = 0; i < 3; ++i) q[1][i] -= along * q[0][i];
  const double left = std::sqrt(Dot(q[1], q[1]));
  for (double& value : q[1]) value /= left;
  for (int trial = 0; trial < 20; ++trial) {
    const Vector x = NormalVector(random, 2);
    const Vector f2 = {Dot(q[0], phi(x)), Dot(q[1], phi(x))};
    const Vector w = NormalVector(random, 2);
    Vector in_phi(3);
    for (int i = 0; i < 3; ++i) in_phi[i] = w[0] * q[0][i] + w[1] * q[1][i];
    const Known known = KnownOf({w}, {}, 1, f2);
    const double k_xx = Dot(x, x) * Dot(x, x);
    EXPECT_NEAR(NormalisedMargin(known.separators, known.scores, k_xx, trial % 2),
                NaiveMargin({in_phi}, phi(x), trial % 2), kRounding);
  }
}

TEST(MarginTest, NothingIsClaimedOfRowsAndVectorsWithoutLength) {
  EXPECT_EQ(NormalisedMargin({.norms = {1}}, {0.0}, 0, 1), 0);
  EXPECT_EQ(NormalisedMargin({.norms = {0}}, {0.0}, 4, 1), 0);
  EXPECT_EQ(NormalisedMargin({.norms = {1, 1, 1}}, {0.0, 0.0, 0.0}, 0, 1), 0);
  // Class 0 has no vector. For a row of class 0, the cosine with its own class counts as −1. For a
  // row of another class, the cosine with the rival class 0 counts as 1.
  const Separators separators = {.norms = {0, 1, 2}};
  const Vector scores = {0, 0.5, -1};
  EXPECT_DOUBLE_EQ(NormalisedMargin(separators, scores, 1, 0), -1 - 0.5);
  EXPECT_DOUBLE_EQ(NormalisedMargin(separators, scores, 1, 1), 0.5 - 1);
  // If class 0 had any vector, margins would not be smaller.
  RandomCursor random(RandomStream(4, StreamId::kProjection));
  for (int trial = 0; trial < 100; ++trial) {
    const double cosine = std::cos(random.Normal());
    for (const int label : {0, 1, 2}) {
      EXPECT_GE(NormalisedMargin({.norms = {1, 1, 2}}, {cosine, 0.5, -1}, 1, label),
                NormalisedMargin(separators, scores, 1, label));
    }
  }
}

TEST(MarginTest, ScoresThatAreOffMoveMarginsByTheAllowanceAtMost) {
  RandomCursor random(RandomStream(5, StreamId::kProjection));
  constexpr double kOff = 0.01;
  for (const int vectors : {1, 3}) {
    double largest = 0;  // the largest change as a share of the allowance
    for (int trial = 0; trial < 100; ++trial) {
      std::vector<Vector> w;
      for (int k = 0; k < vectors; ++k) w.push_back(NormalVector(random, 4));
      const Vector x = NormalVector(random, 4);
      const Vector intercepts = NormalVector(random, vectors);
      Known known = KnownOf(w, intercepts, 1, x);
      const double exact = NormalisedMargin(known.separators, known.scores, Dot(x, x), trial % 2);
      for (int k = 0; k < vectors; ++k) {
        known.scores[k] += (random.Bits64() % 2 == 0 ? kOff : -kOff) * known.separators.norms[k] *
                           std::sqrt(Dot(x, x));
      }
      const double moved =
          std::abs(NormalisedMargin(known.separators, known.scores, Dot(x, x), trial % 2) - exact);
      const double allowance =
          (vectors == 1 ? kOff : 2 * kOff) * std::sqrt(Dot(x, x) / (Dot(x, x) + 1));
      EXPECT_LE(moved, allowance + kRounding);
      EXPECT_NEAR(
          CertainMargin(known.separators, known.scores, Dot(x, x), kOff, trial % 2),
          NormalisedMargin(known.separators, known.scores, Dot(x, x), trial % 2) - allowance,
          kRounding);
      largest = std::max(largest, moved / allowance);
    }
    EXPECT_GT(largest, 0.5) << vectors;
  }
}

// A row whose features may have lost all digits has the least margin that exists, not a smaller
// one.
TEST(MarginTest, ACertainMarginIsNeverLessThanTheLeastThatExists) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Separators two{.norms = {2}};
  const Separators three{.norms = {1, 1, 2}};
  for (const double rounding : {0.9, 1.4, 8.0, infinite}) {
    EXPECT_EQ(CertainMargin(two, {-1.0}, 1, rounding, 1), -1) << rounding;
    EXPECT_EQ(CertainMargin(three, {-0.5, 0.5, 0.1}, 1, rounding, 0), -2) << rounding;
  }
  EXPECT_EQ(CertainMargin({.norms = {2}, .intercepts = {1}}, {1}, 0, infinite, 1), -1);
  EXPECT_DOUBLE_EQ(CertainMargin(two, {-1.0}, 1, 0.25, 1), -0.75);
  EXPECT_DOUBLE_EQ(CertainMargin(three, {-0.5, 0.5, 0.1}, 1, 0.25, 0), -1.5);
}

// Returns rising numbers with ties.
Vector Rising(int n, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kProjection));
  Vector values(static_cast<size_t>(n));
  for (double& value : values) value = std::round(10 * random.Normal()) / 10;
  std::sort(values.begin(), values.end());
  return values;
}

int64_t CountBelow(const Vector& values, double limit) {
  return std::count_if(values.begin(), values.end(), [limit](double v) { return v < limit; });
}

// A q-quantile of some numbers is one of them: the smallest for which at least a share q of all
// numbers is at most as large.
TEST(MarginTest, PercentilesAreQuantiles) {
  for (const int n : {1, 2, 7, 99, 100, 101, 1000}) {
    const Vector values = Rising(n, static_cast<uint64_t>(n));
    const Vector percentiles = Percentiles(values);
    ASSERT_EQ(percentiles.size(), 101u);
    EXPECT_EQ(percentiles.front(), values.front());
    EXPECT_EQ(percentiles.back(), values.back());
    for (int q = 0; q <= 100; ++q) {
      const auto quantile = std::find_if(values.begin(), values.end(), [&](double v) {
        const auto at_most =
            std::count_if(values.begin(), values.end(), [v](double other) { return other <= v; });
        return 100 * at_most >= static_cast<int64_t>(q) * n;
      });
      EXPECT_EQ(percentiles[static_cast<size_t>(q)], *quantile) << q << " of " << n;
    }
  }
  EXPECT_THAT(Percentiles({}), IsEmpty());
}

TEST(MarginTest, OfRowsItIsTheLargestThatAShareOfThemMissesAtMost) {
  for (const int n : {1, 3, 20, 100, 333}) {
    const Vector margins = Rising(n, static_cast<uint64_t>(n) + 50);
    for (int hundredths = 0; hundredths < 100; ++hundredths) {
      const double margin = MarginOfRows(margins, hundredths / 100.0);
      EXPECT_LE(100 * CountBelow(margins, margin), static_cast<int64_t>(hundredths) * n);
      const auto next = std::upper_bound(margins.begin(), margins.end(), margin);
      if (next == margins.end()) continue;
      EXPECT_GT(100 * CountBelow(margins, *next), static_cast<int64_t>(hundredths) * n)
          << hundredths << " of " << n;
    }
  }
}

TEST(MarginTest, OfTheDistributionNothingIsSaidAtErrorZeroOrOfTooFewRows) {
  EXPECT_EQ(MarginOfDistribution(Rising(1000, 1), 0, 0.05), std::nullopt);
  EXPECT_EQ(MarginOfDistribution(Rising(58, 1), 0.05, 0.05), std::nullopt);
  EXPECT_EQ(MarginOfDistribution({}, 0.5, 0.05), std::nullopt);
  EXPECT_EQ(MarginOfDistribution(Rising(59, 1), 0.05, 0.05), Rising(59, 1).front());
}

// Tests how often MarginOfDistribution returns too large a margin. The margins are uniform on [0,
// 1), either exact or rounded down to tenths, so the true probability of a margin below the
// returned one is known. This probability must be at most α. It may
// exceed α in 5 % of the 4,000 trials, plus six standard deviations: in
// 4000·(0.05 + 6·√(0.05·0.95/4000)) trials.
TEST(MarginTest, OfTheDistributionItIsWrongNoMoreOftenThanItSays) {
  constexpr int kTrials = 4000;
  const double allowed = kTrials * (0.05 + 6 * std::sqrt(0.05 * 0.95 / kTrials));
  for (const bool in_tenths : {false, true}) {
    for (const double alpha : {0.05, 0.2}) {
      RandomCursor random(RandomStream(6, StreamId::kProjection));
      int wrong = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        Vector margins(150);
        for (double& m : margins) {
          const double u = random.UniformOpen01();
          m = in_tenths ? std::floor(10 * u) / 10 : u;
        }
        std::sort(margins.begin(), margins.end());
        const double claimed = MarginOfDistribution(margins, alpha, 0.05).value();
        // P[margin < claimed] equals `claimed`, for margins in tenths too.
        if (claimed > alpha + 1e-12) ++wrong;
      }
      EXPECT_LE(wrong, allowed) << alpha;
      // Without ties, the returned margin is not much smaller than necessary. With the rank k
      // increased by one, P[Bin(150, α) < k] would exceed 5 %.
      if (!in_tenths) {
        EXPECT_GT(wrong, 0.01 * kTrials) << alpha;
      }
    }
  }
}

}  // namespace
}  // namespace phimap::testing
