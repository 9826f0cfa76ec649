#include "core/theory/binomial.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// The expected values were computed with 60 digits as the sum of the terms themselves.
TEST(BinomialTest, AgreesWithSixtyDigits) {
  struct {
    int64_t k, n;
    double p, log_term, below;
  } const cases[] = {
      {15, 215, 0.1, -3.4503169113865785, 0.049642310394424058},
      {399, 4307, 0.1, -5.1905902827029394, 0.049745233126014859},
      {3, 10, 0.3, -1.3211512777668886, 0.38278278640000003},
      {1, 50, 0.02, -0.98993265855845297, 0.36416968008711706},
      {40000, 4100000, 0.01, -18.63102530359368, 3.0917635286482844e-7},
      {400, 60000, 0.01, -42.061814493236846, 1.0548149277661284e-18},
      {7, 8, 0.5, -3.4657359027997265, 0.96484375},
      {60, 70, 0.5, -21.813845070166326, 0.99999999959975883},
      {4000000, 4010000000, 0.001, -21.011028961600859, 2.8888404969697162e-7},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.n);
    EXPECT_NEAR(LogBinomial(c.k, c.n, c.p), c.log_term, 1e-11);
    EXPECT_NEAR(BinomialBelow(c.k, c.n, c.p) / c.below, 1, 1e-10);
  }
}

// Pascal's triangle gives the binomial coefficients exactly.
TEST(BinomialTest, AgreesWithPascalsTriangle) {
  double pascal[41][41] = {};
  for (int n = 0; n <= 40; ++n) {
    for (int k = 0; k <= n; ++k) {
      pascal[n][k] = k == 0 || k == n ? 1 : pascal[n - 1][k - 1] + pascal[n - 1][k];
    }
  }
  for (double p : {0.001, 0.3, 0.5, 0.97}) {
    for (int n = 1; n <= 40; ++n) {
      double below = 0;
      for (int k = 0; k <= n; ++k) {
        EXPECT_NEAR(BinomialBelow(k, n, p), below, 1e-12) << k << " of " << n << " at " << p;
        below += pascal[n][k] * std::pow(p, k) * std::pow(1 - p, n - k);
      }
      EXPECT_EQ(BinomialBelow(n + 1, n, p), 1);
    }
  }
}

TEST(BinomialTest, TrialsAreTheFewestThatDo) {
  for (int64_t k : {1, 2, 16, 100}) {
    for (double p : {0.9, 0.5, 0.1, 0.003}) {
      for (double delta : {0.9, 0.5, 0.05, 1e-9}) {
        SCOPED_TRACE(::testing::Message() << k << " " << p << " " << delta);
        const std::optional<int64_t> n = TrialsFor(k, p, delta);
        ASSERT_TRUE(n.has_value());
        EXPECT_LE(BinomialBelow(k, *n, p), delta);
        EXPECT_GT(BinomialBelow(k, *n - 1, p), delta);
      }
    }
  }
}

// For a single success, n >= ln δ/ln(1 − p).
TEST(BinomialTest, OneSuccessHasAClosedForm) {
  for (double p : {0.5, 0.01, 1e-6, 1e-12}) {
    const double n = std::log(0.05) / std::log1p(-p);
    EXPECT_NEAR(static_cast<double>(TrialsFor(1, p, 0.05).value()), std::ceil(n), n * 1e-12);
  }
}

TEST(BinomialTest, MoreTrialsThanADoubleCountsAreNoNumber) {
  EXPECT_EQ(TrialsFor(400'000'000, 1e-9, 0.05), std::nullopt);
  EXPECT_EQ(TrialsFor(1, 1e-30, 0.05), std::nullopt);
}

// Returns P[Bin(n, p) < k], summed term by term, from the side on which the terms do not underflow.
double NaiveBelow(int64_t k, int64_t n, double p) {
  if (p > 0.5) return 1 - NaiveBelow(n - k + 1, n, 1 - p);
  long double below = 0;
  long double term = std::pow(1.0L - p, n);
  for (int64_t i = 0; i < k; ++i) {
    below += term;
    term *= static_cast<long double>(n - i) / (i + 1) * (p / (1.0L - p));
  }
  return static_cast<double>(below);
}

TEST(BinomialTest, TheConfidentRankIsTheLargestOfItsProbability) {
  for (const int64_t n : {1, 5, 58, 59, 200, 1000}) {
    for (const double alpha : {0.01, 0.05, 0.3, 0.5, 0.9}) {
      for (const double doubt : {0.5, 0.05, 0.001}) {
        const int64_t rank = ConfidentRank(n, alpha, doubt);
        EXPECT_GE(rank, 0);
        EXPECT_LE(rank, n);
        if (rank > 0) {
          EXPECT_LE(NaiveBelow(rank, n, alpha), doubt * (1 + 1e-9));
        }
        if (rank < n) {
          EXPECT_GT(NaiveBelow(rank + 1, n, alpha), doubt * (1 - 1e-9));
        }
      }
    }
  }
  // 59 is the least number of rows for which the smallest margin is a bound at α = 0.05, because
  // 0.95⁵⁸ > 0.05 > 0.95⁵⁹.
  EXPECT_EQ(ConfidentRank(58, 0.05, 0.05), 0);
  EXPECT_EQ(ConfidentRank(59, 0.05, 0.05), 1);
  EXPECT_EQ(ConfidentRank(1000, 0.05, 0.05), 39);
  EXPECT_EQ(ConfidentRank(0, 0.05, 0.05), 0);
}

// The ends solve the two equations of Clopper and Pearson; NaiveBelow sums the probabilities.
TEST(BinomialTest, TheIntervalEndsWhereTheTailsAreHalfTheDoubt) {
  for (const int64_t n : {1, 7, 100, 1200}) {
    for (const int64_t k : {int64_t{0}, n / 10, n / 2, n - 1, n}) {
      for (const double confidence : {0.5, 0.95, 0.999}) {
        SCOPED_TRACE(::testing::Message() << k << " of " << n << " at " << confidence);
        const ProbabilityInterval interval = BinomialInterval(k, n, confidence);
        const double doubt = (1 - confidence) / 2;
        if (k == 0) {
          EXPECT_EQ(interval.low, 0);
        }
        if (k == n) {
          EXPECT_EQ(interval.high, 1);
        }
        if (k > 0) {
          EXPECT_NEAR(1 - NaiveBelow(k, n, interval.low), doubt, 1e-9);
        }
        if (k < n) {
          EXPECT_NEAR(NaiveBelow(k + 1, n, interval.high), doubt, 1e-9);
        }
      }
    }
  }
}

TEST(BinomialTest, NoErrorOfTwelveHundredIsNoCertainty) {
  const ProbabilityInterval none = BinomialInterval(0, 1200, 0.95);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 1 - std::pow(0.025, 1.0 / 1200), 1e-12);  // 0.307 %
  const ProbabilityInterval all = BinomialInterval(1200, 1200, 0.95);
  EXPECT_NEAR(all.low, std::pow(0.025, 1.0 / 1200), 1e-12);
  EXPECT_EQ(all.high, 1);
}

// For each p, the probability of the k whose interval has p is summed over all k. An interval whose
// half-widths are divided by 2 must not pass.
TEST(BinomialTest, TheIntervalCoversEveryProbability) {
  constexpr int64_t kTrials = 60;
  double least = 1;
  double least_of_half = 1;
  for (double p = 0.005; p < 1; p += 0.01) {
    double covered = 0;
    double half_covered = 0;
    for (int64_t k = 0; k <= kTrials; ++k) {
      const ProbabilityInterval interval = BinomialInterval(k, kTrials, 0.95);
      const double share = static_cast<double>(k) / kTrials;
      const double mass = NaiveBelow(k + 1, kTrials, p) - NaiveBelow(k, kTrials, p);
      if (interval.low <= p && p <= interval.high) covered += mass;
      if ((interval.low + share) / 2 <= p && p <= (interval.high + share) / 2) half_covered += mass;
    }
    least = std::min(least, covered);
    least_of_half = std::min(least_of_half, half_covered);
  }
  EXPECT_GE(least, 0.95 - 1e-9);
  EXPECT_LT(least_of_half, 0.9);
}

}  // namespace
}  // namespace phimap::testing
