#include "core/random/portable_math.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kArguments = 400000;
// Results are compared with libm in long double. If long double is the 80-bit type, it has 64 bits
// of mantissa, so the error of libm is only 2^-10 ULP here.
static_assert(LDBL_MANT_DIG >= 64);

// Returns |actual − exact| in units of the last place of the result.
double UlpError(double actual, long double exact) {
  const double rounded = std::abs(static_cast<double>(exact));
  const double ulp = std::nextafter(rounded, kInfinity) - rounded;
  return static_cast<double>(std::abs(actual - exact) / ulp);
}

RandomCursor Draws() { return RandomCursor(RandomStream(1, StreamId::kGammaPairs)); }
double Between(RandomCursor& draws, double low, double high) {
  return low + (high - low) * draws.UniformOpen01();
}

TEST(PortableMathTest, ExpIsWithinOneUlp) {
  RandomCursor draws = Draws();
  double worst = 0;
  for (double range : {1e-9, 1e-3, 0.35, 1.0, 40.0, 708.0}) {
    for (int i = 0; i < kArguments / 4; ++i) {
      const double x = Between(draws, -range, range);
      worst = std::max(worst, UlpError(Exp(x), std::exp(static_cast<long double>(x))));
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 1.0);
}

TEST(PortableMathTest, ExpUnderflowsGradually) {
  RandomCursor draws = Draws();
  for (int i = 0; i < kArguments / 4; ++i) {
    const double x = Between(draws, -745.0, -708.0);
    EXPECT_LE(UlpError(Exp(x), std::exp(static_cast<long double>(x))), 2.0) << x;
  }
}

TEST(PortableMathTest, ExpOfSpecialValues) {
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(-0.0), 1.0);
  EXPECT_EQ(Exp(5e-324), 1.0);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
  EXPECT_LT(Exp(0x1.62e42fefa39efp+9), kInfinity);  // the largest x whose exponential is finite
  EXPECT_EQ(Exp(0x1.62e42fefa39fp+9), kInfinity);   // the next larger number
  EXPECT_EQ(Exp(1e300), kInfinity);
  EXPECT_EQ(Exp(-745.13), 5e-324);
  EXPECT_EQ(Exp(-745.14), 0.0);
}

TEST(PortableMathTest, LogIsWithinOneUlp) {
  RandomCursor draws = Draws();
  double worst = 0;
  for (double range : {1e-6, 0.01, 0.3, 1.0, 700.0}) {
    for (int i = 0; i < kArguments / 4; ++i) {
      const double x = std::exp(Between(draws, -range, range));
      worst = std::max(worst, UlpError(Log(x), std::log(static_cast<long double>(x))));
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 1.0);
}

TEST(PortableMathTest, LogOfSpecialValues) {
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_FALSE(std::signbit(Log(1.0)));
  EXPECT_EQ(Log(0.0), -kInfinity);
  EXPECT_EQ(Log(-0.0), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1.0)));
  EXPECT_TRUE(std::isnan(Log(kNaN)));
  for (double x : {5e-324, 1e-310, DBL_MIN, 0x1.fffffffffffffp-1, 0x1.0000000000001p+0, 2.0,
                   0x1.6a09e667f3bccp+0, 0x1.6a09e667f3bcdp+0, DBL_MAX}) {
    EXPECT_LE(UlpError(Log(x), std::log(static_cast<long double>(x))), 1.0) << x;
  }
}

TEST(PortableMathTest, Log1pIsWithinItsBoundFromTheTiniestToTheLargest) {
  RandomCursor draws = Draws();
  double worst_near = 0, worst_far = 0;
  for (int i = 0; i < kArguments; ++i) {
    const double magnitude = std::exp(Between(draws, -740.0, 700.0));
    const double near = std::exp(Between(draws, -45.0, 1.0));
    for (double x : {magnitude, -magnitude, near, -near, -1.0 + near}) {
      if (x <= -1) continue;
      const double error = UlpError(Log1p(x), std::log1p(static_cast<long double>(x)));
      double& worst = std::abs(x) < 0.29 ? worst_near : worst_far;
      worst = std::max(worst, error);
    }
  }
  RecordProperty("worst_ulp_near", std::to_string(worst_near));
  RecordProperty("worst_ulp_far", std::to_string(worst_far));
  EXPECT_LE(worst_near, 1.0);
  EXPECT_LE(worst_far, 1.5);
}

TEST(PortableMathTest, Log1pOfSpecialValues) {
  EXPECT_EQ(Log1p(0.0), 0.0);
  EXPECT_TRUE(std::signbit(Log1p(-0.0)));
  EXPECT_EQ(Log1p(5e-324), 5e-324);
  EXPECT_EQ(Log1p(-1.0), -kInfinity);
  EXPECT_EQ(Log1p(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log1p(-1.5)));
  EXPECT_TRUE(std::isnan(Log1p(kNaN)));
}

// Returns P(N < x) for x ≤ 0, computed by the complementary error function, which is accurate in
// the tail.
long double LowerTail(double x) {
  return 0.5L * std::erfc(-static_cast<long double>(x) / std::sqrt(2.0L));
}

// φ is the normal density. An error dp of the probability corresponds to an error dx = dp/φ(x) of
// the quantile x.
TEST(PortableMathTest, NormalQuantileInvertsTheDistributionFunction) {
  RandomCursor draws = Draws();
  double worst = 0;
  for (int i = 0; i < kArguments; ++i) {
    const double uniform = 0.5 * draws.UniformOpen01();
    const double tail = std::exp(-36.7 * draws.UniformOpen01() - 0.7);  // down to 2^-54
    for (double p : {uniform, tail}) {
      const double x = NormalQuantile(p);
      const long double density = std::exp(-0.5L * x * x) * 0.398942280401432677939946059934381868L;
      const long double error = (LowerTail(x) - p) / density / x;
      worst = std::max(worst, static_cast<double>(std::abs(error)));
    }
  }
  RecordProperty("worst_relative_error", std::to_string(worst * 1e16) + "e-16");
  EXPECT_LE(worst, 1e-15);
}

TEST(PortableMathTest, NormalQuantileIsOddAndStrictAtTheEnds) {
  for (double p : {0x1p-53, 0x1p-30, 0.0625, 0.07421875, 0.25, 0.4375}) {
    EXPECT_EQ(NormalQuantile(1.0 - p), -NormalQuantile(p)) << p;
  }
  EXPECT_EQ(NormalQuantile(0.5), 0.0);
  EXPECT_EQ(NormalQuantile(0.0), -kInfinity);
  EXPECT_EQ(NormalQuantile(1.0), kInfinity);
  for (double p : {-0.1, 1.1, kNaN}) EXPECT_TRUE(std::isnan(NormalQuantile(p)));
  // The quantiles of 0.25, 0.001 and 1e-20 were published with the algorithm (AS 241).
  EXPECT_NEAR(NormalQuantile(0.25), -0.6744897501960817, 1e-15);
  EXPECT_NEAR(NormalQuantile(0.001), -3.090232306167814, 4e-15);
  EXPECT_NEAR(NormalQuantile(1e-20), -9.262340089798408, 1e-14);
}

}  // namespace
}  // namespace phimap::testing
