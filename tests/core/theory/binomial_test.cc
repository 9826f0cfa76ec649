#include "core/theory/binomial.h"

#include <cmath>

#include "gtest/gtest.h"

namespace phimap {
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

}  // namespace
}  // namespace phimap
