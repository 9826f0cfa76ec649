#include "core/theory/projection_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random/stream_ids.h"
#include "core/theory/cosine_law.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

// Compares probabilities with another formula: the density of the correlation coefficient
// (Hotelling's form), integrated over the angle by scipy's adaptive quadrature. For n = 300 with
// cosines near 1, and for larger n, the integration uses 80-bit arithmetic.
TEST(ProjectionLawTest, CosinesAgreeWithTheCorrelationCoefficientsDensity) {
  struct {
    int64_t n;
    double c, low, high, expected;
  } const cases[] = {
      {2, 0.5, -0.3, 0.7, 0.3279197014490391},
      {2, -0.9, -0.99, -0.5, 0.6166494233887255},
      {3, 0.99, 0.98, 0.999, 0.6743604387073985},
      {3, 0, -0.2, 0.6, 0.3999999999999998},
      {5, -0.4, -0.6, 0.1, 0.516429599263988},
      {10, 0.95, 0.93, 0.97, 0.4817580358309367},
      {30, 0.827, 0.7443, 0.9097, 0.8552042539470495},
      {30, 0.827, 0.5789, 1.0751, 0.9974316549095441},
      {30, -0.062, -0.0682, -0.0558, 0.02650889843591319},
      {300, 0.527, 0.4743, 0.5797, 0.7936855741975885},
      {300, -0.0165, -0.02145, -0.01155, 0.06817250613765617},
      {300, -0.827, -0.9097, -0.7443, 0.9999236200830647},
      {300, 0.9999, 0.9999, 0.99995, 0.5115393686152241},
      {20000, 0.3, 0.29, 0.31, 0.879833541756018},
      {1000000, -0.05, -0.051, -0.0495, 0.5338641663074803},
      {5000, 0.99, 0.9895, 0.9903, 0.8179581399906405},
      {1000000, 0.9, 0.8999, 0.9003, 0.6437670118877326},
      {1000000, 0.9999, 0.9998, 0.9999001, 0.6913832269328496},
  };
  for (const auto& k : cases) {
    EXPECT_NEAR(CosineWithin(k.n, k.c, k.low, k.high), k.expected, 1e-10)
        << "n = " << k.n << ", c = " << k.c << ", " << k.low << " to " << k.high;
  }
}

// Compares the probabilities with another formula for the inner product. w and x are unit vectors
// with the cosine c, and R is a Gaussian matrix with n rows, here not divided by √n. z and z' are
// the entries of Rw and Rx in one row. Since z·z' = ((z + z')² − (z − z')²)/4, the inner product
// ⟨Rw, Rx⟩ is ((1 + c)A − (1 − c)B)/2. Here A and B are independent and chi-squared with n degrees
// of freedom.
//
// The expected values are from scipy's quadrature over B. From n = 10 on, they agree with the
// inversion of the characteristic function (1 − 2ict + s²t²)^(−n/2), where s² = 1 − c².
TEST(ProjectionLawTest, InnerProductsAgreeWithADifferenceOfChiSquaredVariables) {
  struct {
    int64_t n;
    double c, low, high, expected;
  } const cases[] = {
      {1, 0.5, -0.1, 0.4, 0.4038787243477211},
      {1, -0.3, -2, -0.01, 0.5163605994059586},
      {1, 0.9, 0.5, 3, 0.3747778677932221},
      {2, 0, -0.5, 0.25, 0.5127949495579622},
      {2, -0.95, -1.5, -0.5, 0.3744907601241346},
      {3, 0.999, 0.3, 1.4, 0.5846554060033052},
      {10, 0.2, 0.01, 0.5, 0.5566961388765708},
      {30, 0.827, 0.7443, 0.9097, 0.2722966078075641},
      {30, 0.827, 0.5789, 1.0751, 0.7111542818392572},
      {30, -0.062, -0.0806, -0.0434, 0.08302021286427103},
      {300, 0.527, 0.4743, 0.5797, 0.5810651103786333},
      {300, -0.0165, -0.01815, -0.01485, 0.02285347221771561},
      {300, -0.827, -0.9097, -0.7443, 0.7309933687195572},
      {300, 0.9999, 0.95, 1.02, 0.330935093165437},
      {20000, 0.3, 0.29, 0.31, 0.8244538774665484},
  };
  for (const auto& k : cases) {
    EXPECT_NEAR(InnerProductWithin(k.n, k.c, k.low, k.high), k.expected, 1e-10)
        << "n = " << k.n << ", c = " << k.c << ", " << k.low << " to " << k.high;
  }
}

// CosineBelow of cosine_law.h computes the same tail, with a bound on its relative error.
TEST(ProjectionLawTest, CosinesAgreeWithTheTailOfTheCosineLaw) {
  for (const int64_t n : {1, 2, 3, 10, 78, 544, 20'000}) {
    for (const double c : {0.02, 0.25, 0.5, 0.9, 0.9999}) {
      for (const double share : {0.1, 0.5, 0.9}) {
        const double t = std::min(0.9, share * c);
        EXPECT_NEAR(CosineWithin(n, c, -kNoBound, t), CosineBelow(n, c, t), 1e-10)
            << n << " " << c << " " << t;
      }
    }
  }
}

// In one dimension the cosine is ±1. It is −1 with the probability that a random line separates the
// two vectors, which is their angle divided by π.
TEST(ProjectionLawTest, InOneDimensionTheCosineIsASign) {
  const double pi = std::acos(-1.0);
  for (const double c : {-0.99, -0.3, 0.0, 0.5, 0.999}) {
    EXPECT_NEAR(CosineWithin(1, c, -1, 1), std::acos(c) / pi, 1e-15) << "−1, not 1";
    EXPECT_NEAR(CosineWithin(1, c, 0.5, 2), 1 - std::acos(c) / pi, 1e-15);
    EXPECT_EQ(CosineWithin(1, c, -0.9, 0.9), 0);
  }
}

// Replacing x by −x changes the signs of the bounds and of the cosine.
TEST(ProjectionLawTest, AnObtuseAngleIsAnAcuteOneMirrored) {
  for (const int64_t n : {1, 2, 3, 30, 1000}) {
    for (const double c : {0.0, 0.0165, 0.4, 0.827, 0.99}) {
      for (const double low : {-0.7, 0.1, 0.8}) {
        const double high = low + 0.15;
        EXPECT_NEAR(CosineWithin(n, -c, low, high), CosineWithin(n, c, -high, -low), 1e-12);
        EXPECT_NEAR(InnerProductWithin(n, -c, low, high), InnerProductWithin(n, c, -high, -low),
                    1e-12);
      }
    }
  }
}

TEST(ProjectionLawTest, PartsAddUpToTheWhole) {
  for (const int64_t n : {1, 2, 5, 300}) {
    for (const double c : {-0.9, 0.0, 0.3, 0.999}) {
      double cosines = 0;
      double products = 0;
      for (int i = -15; i < 15; ++i) {
        cosines += CosineWithin(n, c, i / 10.0, (i + 1) / 10.0);
        products += InnerProductWithin(n, c, i / 10.0, (i + 1) / 10.0);
      }
      EXPECT_NEAR(cosines, 1, 1e-10) << n << " " << c;
      products +=
          InnerProductWithin(n, c, -kNoBound, -1.5) + InnerProductWithin(n, c, 1.5, kNoBound);
      EXPECT_NEAR(products, 1, 1e-10) << n << " " << c;
      EXPECT_EQ(CosineWithin(n, c, -1, 1.5), 1);
      EXPECT_EQ(CosineWithin(n, c, 0.2, 0.2), 0);
      EXPECT_EQ(InnerProductWithin(n, c, 0.2, 0.2), 0);
    }
  }
}

// For a large number n of dimensions, the cosine and the inner product are nearly normal. Both have
// the mean c, the cosine before the projection. The standard deviation is (1 − c²)/√n for the
// cosine and √((1 + c²)/n) for the inner product. The difference from the normal law is of the
// order of 1/√n, and so is the tolerance.
TEST(ProjectionLawTest, ManyDimensionsComeNearTheNormalLaw) {
  constexpr int64_t kN = 1'000'000;
  const double within = std::erf(1 / std::sqrt(2.0));
  for (const double c : {-0.8, 0.0, 0.5}) {
    const double of_cosine = (1 - c * c) / std::sqrt(kN);
    const double of_product = std::sqrt((1 + c * c) / kN);
    EXPECT_NEAR(CosineWithin(kN, c, c - of_cosine, c + of_cosine), within, 1e-3);
    EXPECT_NEAR(InnerProductWithin(kN, c, c - of_product, c + of_product), within, 1e-3);
  }
}

// Tests that the results stay accurate for vectors that nearly coincide, although 1 − c cancels
// there. c is the cosine of the vectors before the projection, s² = 1 − c², and n is the number of
// dimensions. X² and Y² are chi-squared variables. After the projection, 1 minus the cosine is
// s²Y²/(2X²), up to a relative error of s². The law of this quotient is Fisher's F (scipy). The
// inner product is c·X²/n, up to a relative error of s.
TEST(ProjectionLawTest, VectorsThatNearlyCoincideKeepTheirDigits) {
  const double c = 1 - 1e-6;
  EXPECT_NEAR(CosineWithin(30, c, 1 - 2e-6, 1), 0.9739733406922018, 1e-5);
  // The expected value is P[|X²/30 − 1| <= .1], computed with scipy's chi2.
  EXPECT_NEAR(InnerProductWithin(30, 1 - 1e-9, 0.9, 1.1), 0.300729028474166, 1e-8);
}

// Draws pairs of projected vectors and counts how often the cosine and the inner product fall in an
// interval. A count out of kTrials draws must be within six standard deviations of its expected
// value. The seed is fixed. The same counts must reject three wrong laws: the law for one dimension
// less, the law for one dimension more, and the law of the inner product used for the cosine.
TEST(ProjectionLawTest, AgreesWithProjectionsThatAreDrawnAndOtherLawsDoNot) {
  constexpr int kTrials = 100'000;
  const RandomStream normals(1, StreamId::kProjection);
  uint64_t index = 0;
  for (const int n : {3, 6}) {
    for (const double c : {-0.7, 0.6}) {
      const double low = c - 0.2;
      const double high = c + 0.2;
      int cosines = 0;
      int products = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        double ww = 0, wx = 0, xx = 0;
        for (int i = 0; i < n; ++i) {
          const double w = normals.Normal(index++);
          const double x = c * w + std::sqrt(1 - c * c) * normals.Normal(index++);
          ww += w * w;
          wx += w * x;
          xx += x * x;
        }
        const double cosine = wx / std::sqrt(ww * xx);
        cosines += low <= cosine && cosine < high ? 1 : 0;
        products += low <= wx / n && wx / n <= high ? 1 : 0;
      }
      const auto agrees = [](int seen, double p) {
        return std::abs(seen - p * kTrials) <= 6 * std::sqrt(p * (1 - p) * kTrials);
      };
      EXPECT_TRUE(agrees(cosines, CosineWithin(n, c, low, high))) << n << " " << c;
      EXPECT_TRUE(agrees(products, InnerProductWithin(n, c, low, high))) << n << " " << c;
      for (const int other : {n - 1, n + 1}) {
        EXPECT_FALSE(agrees(cosines, CosineWithin(other, c, low, high))) << n << " " << c;
        EXPECT_FALSE(agrees(products, InnerProductWithin(other, c, low, high))) << n << " " << c;
      }
      EXPECT_FALSE(agrees(cosines, InnerProductWithin(n, c, low, high))) << n << " " << c;
    }
  }
}

}  // namespace
}  // namespace phimap::testing
