#include "core/theory/cosine_law.h"

#include <cmath>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// Compares probabilities with another formula. It integrates the density of the correlation
// coefficient (Anderson, An Introduction to Multivariate Statistical Analysis, 4.2) from −1 to t
// with 40 digits (mpmath). In n = 1 dimension, the probability is acos(c)/π.
TEST(CosineLawTest, AgreesWithTheCorrelationCoefficientsDensity) {
  struct {
    int64_t n;
    double c, t, expected;
  } const cases[] = {
      {1, 0.5, 0.25, 0.33333333333333333},
      {2, 0.5, 0.25, 0.31698977143205868},
      {2, 0.9999, 0.4, 8.9006093117492114e-5},
      {3, 0.9999, 0.5, 2.3514902770527273e-6},
      {3, 0.5, 0.25, 0.29182784817224653},
      {5, 0.5, 0.25, 0.24820489262094403},
      {2, 0.999999, 0.5, 1.0726644672853514e-6},
      {5, 0.99, 0.49, 0.00010613487737105475},
      {10, 0.99, 0.3, 7.1674680575493459e-9},
      {20, 0.9, 0.45, 1.9869113903354257e-5},
      {40, 0.99, 0.3, 1.0647286493042804e-30},
      {78, 0.5, 0.25, 0.0049035675317459196},
      {200, 0.9, 0.85, 0.0010793329780279168},
      {500, 0.9, 0.7, 8.4375482715175035e-40},
      {50, 0.95, 0.9, 0.0052652308200905137},
      {544, 0.25, 0.125, 0.0012496446009160112},
      {3, 0.999, 0.8, 0.00033100470531120844},
      {14584, 0.05, 0.025, 0.0012497178728215433},
      {200000, 0.05, 0.025, 2.1303840754137297e-29},
      {1000000, 0.01, 0.005, 2.862318441270881e-7},
      {100000000, 0.001, 0.0005, 2.8664737192362552e-7},
      {80000000000, 5e-05, 2.5e-05, 7.6872984199869861e-13},
      {30, 0.9999, 0.9, 2.5117374900136707e-38},
  };
  for (const auto& c : cases) {
    const double tolerance = c.expected > 1e-30 ? 1e-12 : 1e-8;
    EXPECT_NEAR(CosineBelow(c.n, c.c, c.t) / c.expected, 1, tolerance)
        << "n = " << c.n << ", c = " << c.c << ", t = " << c.t;
  }
}

// Draws pairs of vectors with the cosine c, multiplies them by Gaussian matrices with n rows, and
// counts how often the cosine is below t. The share of such draws must be within six standard
// deviations, √(p(1 − p)/T) each, of the probability p. T is the number of draws. The seed is
// fixed.
TEST(CosineLawTest, AgreesWithProjectionsThatAreDrawn) {
  struct {
    int n;
    double c, t;
  } const cases[] = {{1, 0.5, 0.25}, {2, 0.3, 0.2}, {4, 0.9, 0.7}, {30, 0.25, 0.125}};
  constexpr int kTrials = 20'000;
  uint64_t index = 0;
  const RandomStream normals(1, StreamId::kProjection);
  for (const auto& k : cases) {
    const double s = std::sqrt(1 - k.c * k.c);
    int below = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      double ww = 0, wx = 0, xx = 0;
      for (int i = 0; i < k.n; ++i) {
        const double w = normals.Normal(index++);
        const double x = k.c * w + s * normals.Normal(index++);
        ww += w * w;
        wx += w * x;
        xx += x * x;
      }
      below += wx / std::sqrt(ww * xx) < k.t;
    }
    const double expected = CosineBelow(k.n, k.c, k.t);
    EXPECT_NEAR(static_cast<double>(below) / kTrials, expected,
                6 * std::sqrt(expected * (1 - expected) / kTrials))
        << "n = " << k.n << ", c = " << k.c << ", t = " << k.t;
  }
}

TEST(CosineLawTest, FallsWithDimensionsAndCosineAndRisesWithTheThreshold) {
  double before = 1;
  for (int64_t n : {1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 1000, 10'000}) {
    const double p = CosineBelow(n, 0.3, 0.15);
    EXPECT_LT(p, before) << n;
    before = p;
  }
  before = 1;
  for (double c = 0.21; c < 1; c += 0.01) {
    const double p = CosineBelow(20, c, 0.2);
    EXPECT_LT(p, before) << c;
    before = p;
  }
  EXPECT_EQ(CosineBelow(20, 1, 0.2), 0);
  before = 0;
  for (double t = 0.01; t < 0.9; t += 0.01) {
    const double p = CosineBelow(20, 0.9, t);
    EXPECT_GT(p, before) << t;
    before = p;
  }
}

// Tests that the probability falls with the number of dimensions if the threshold t is at most c/2.
// The search for the fewest dimensions needs this. For t near c it is false: one dimension can be
// better than two, because in one dimension the cosine is always −1 or 1.
TEST(CosineLawTest, FallsWithDimensionsWheneverTheThresholdIsHalfTheCosineOrLess) {
  for (double c : {1e-4, 0.1, 0.3, 0.6, 0.9, 0.999}) {
    for (double t : {c / 2, c / 3, c / 100}) {
      double before = 1;
      for (int64_t n = 1; n < 40; ++n) {
        const double p = CosineBelow(n, c, t);
        EXPECT_LT(p, before) << n << " " << c << " " << t;
        before = p;
      }
    }
  }
  EXPECT_GT(CosineBelow(2, 0.3, 0.2), CosineBelow(1, 0.3, 0.2));
}

TEST(CosineLawTest, DimensionsAreTheFewestThatDo) {
  for (double c : {1e-4, 0.05, 0.5, 0.9, 0.999, 0.999999}) {
    for (double ratio : {0.1, 0.5}) {
      for (double p : {0.6, 0.1, 1e-3, 1e-12, 1e-30}) {
        const double t = c * ratio;
        const int64_t n = ProjectionDimensions(c, t, p);
        SCOPED_TRACE(::testing::Message() << c << " " << t << " " << p << ": " << n);
        EXPECT_LE(CosineBelow(n, c, t), p);
        if (n > 1) {
          EXPECT_GT(CosineBelow(n - 1, c, t), p);
        }
      }
    }
  }
  EXPECT_EQ(ProjectionDimensions(1, 0.5, 1e-9), 1);
}

// The cosine c before the projection, the threshold t and the allowed probability p are computed
// from γ, ε and δ. For F3's second step, c = γ/2, t = γ/4 and p = εδ/4. For a direct projection, c
// = γ, t = γ/2 and p = εδ.
TEST(CosineLawTest, HasItsGoldenValues) {
  struct {
    double margin, error, delta;
    int64_t f3, direct;
  } const cases[] = {{0.5, 0.1, 0.05, 544, 78},
                     {0.2, 0.1, 0.05, 3615, 634},
                     {0.1, 0.1, 0.05, 14584, 2624},
                     {0.1, 0.01, 0.05, 21399, 4282}};
  for (const auto& c : cases) {
    const double p = c.error * c.delta;
    EXPECT_EQ(ProjectionDimensions(c.margin / 2, c.margin / 4, p / 4), c.f3);
    EXPECT_EQ(ProjectionDimensions(c.margin, c.margin / 2, p), c.direct);
  }
}

}  // namespace
}  // namespace phimap::testing
