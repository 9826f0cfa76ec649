#include "core/theory/projection_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random/stream_ids.h"
#include "core/theory/cosine_law.h"
#include "gtest/gtest.h"
#include "tests/support/rare_failures.h"

namespace phimap::testing {
namespace {

TEST(ProjectionBoundsTest, LengthsHaveTheirGoldenValues) {
  EXPECT_EQ(LengthDimensions(Tier::kLiteral, 0.1, 0.01), 2355);
  EXPECT_EQ(LengthDimensions(Tier::kDerived, 0.1, 0.01), 2271);
}

TEST(ProjectionBoundsTest, DistortionIsTheInverseOfDimensions) {
  for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
    for (const int64_t k : {200, 2271, 40000}) {
      const std::optional<double> e = LengthDistortion(tier, k, 0.01);
      ASSERT_TRUE(e.has_value());
      EXPECT_LE(LengthDimensions(tier, *e * (1 + 1e-9), 0.01), k);
      EXPECT_GE(LengthDimensions(tier, *e * (1 - 1e-3), 0.01), k);
    }
    EXPECT_FALSE(LengthDistortion(tier, 1, 0.01).has_value());
  }
}

TEST(ProjectionBoundsTest, F3HasItsGoldenValues) {
  struct {
    double margin, error, delta;
    int64_t literal, derived, exact;
  } const cases[] = {{0.5, 0.1, 0.05, 35840, 5546, 544},
                     {0.2, 0.1, 0.05, 219742, 43403, 3615},
                     {0.1, 0.1, 0.05, 873440, 186200, 14584},
                     {0.1, 0.01, 0.05, 1110708, 241285, 21399}};
  for (const auto& c : cases) {
    EXPECT_EQ(F3Dimensions(Tier::kLiteral, c.margin, c.error, c.delta), c.literal);
    EXPECT_EQ(F3Dimensions(Tier::kDerived, c.margin, c.error, c.delta), c.derived);
    EXPECT_EQ(F3Dimensions(Tier::kExact, c.margin, c.error, c.delta), c.exact);
  }
}

TEST(ProjectionBoundsTest, DirectProjectionHasItsGoldenValues) {
  EXPECT_EQ(DirectDimensions(0.5, 0.1, 0.05), 78);
  EXPECT_EQ(DirectDimensions(0.2, 0.1, 0.05), 634);
  EXPECT_EQ(DirectDimensions(0.1, 0.1, 0.05), 2624);
  EXPECT_EQ(DirectDimensions(0.1, 0.01, 0.05), 4282);
}

TEST(ProjectionBoundsTest, DataSetsHaveTheirGoldenValues) {
  const double derived = DistortionForCosine(Tier::kDerived, 0.5, 0.25);
  EXPECT_NEAR(derived, 0.2, 1e-15);
  EXPECT_EQ(AngleDimensions(derived, 1000, 0.05), 1350);
  EXPECT_NEAR(DataSetMargin(Tier::kDerived, 0.5, derived), 0.25, 1e-15);
  const double literal = DistortionForCosine(Tier::kLiteral, 0.5, 0.25);
  EXPECT_NEAR(literal, 1.0 / 9, 1e-15);
  EXPECT_EQ(AngleDimensions(literal, 1000, 0.05), 4093);
  EXPECT_NEAR(DataSetMargin(Tier::kLiteral, 0.5, literal), 0.25, 1e-15);
}

// Tests the remark after Theorem 6: the bound on the margin may be negative. A negative bound
// states nothing, but the function returns it unchanged rather than 0.
TEST(ProjectionBoundsTest, TheMarginOfADataSetMayBeNegative) {
  EXPECT_NEAR(DataSetMargin(Tier::kLiteral, 0.1, 0.5), -1.9, 1e-15);
  EXPECT_NEAR(DataSetMargin(Tier::kDerived, 0.1, 0.5), -1.7, 1e-15);
}

TEST(ProjectionBoundsTest, ProjectedKernelsHaveTheirGoldenValue) {
  // β = 1 means probability 1 − 1/n.
  EXPECT_EQ(ProjectedKernelDimensions(0.2, 1000, 1.0 / 1000), 2392);
}

TEST(ProjectionBoundsTest, SharperIsNeverWorse) {
  for (double e = 0.01; e < 1; e += 0.01) {
    EXPECT_LE(LengthDimensions(Tier::kDerived, e, 0.05), LengthDimensions(Tier::kLiteral, e, 0.05));
    EXPECT_GE(DataSetMargin(Tier::kDerived, 0.4, e), DataSetMargin(Tier::kLiteral, 0.4, e));
  }
  for (double margin : {1.0, 0.5, 0.01, 1e-4}) {
    for (double error : {0.5, 1e-6}) {
      const auto dimensions = [&](Tier tier) { return F3Dimensions(tier, margin, error, 0.05); };
      EXPECT_LT(dimensions(Tier::kDerived), dimensions(Tier::kLiteral));
      EXPECT_LT(dimensions(Tier::kExact), dimensions(Tier::kDerived));
    }
  }
}

TEST(ProjectionBoundsTest, ACosineOfOneNeedsNoMore) {
  EXPECT_NEAR(LowestCosine(1, 0.3), 1, 1e-15);
  EXPECT_LT(DistortionForCosine(Tier::kDerived, 1, 0.5), 1);
  EXPECT_EQ(DirectDimensions(1, 1e-6, 1e-9), 1);
}

TEST(ProjectionBoundsTest, APerfectSampleIsAFixedPoint) {
  for (const Tier tier : {Tier::kLiteral, Tier::kDerived, Tier::kExact}) {
    for (double margin : {1.0, 0.2, 1e-4}) {
      const PerfectSample sample = F3PerfectSample(tier, margin, 0.1, 0.05);
      ASSERT_TRUE(sample.dimensions.has_value());
      const double d = static_cast<double>(*sample.dimensions);
      EXPECT_NEAR(sample.error, 0.1 / (d * std::log(d)), 1e-12 * sample.error);
      EXPECT_EQ(F3Dimensions(tier, margin, sample.error, 0.05), sample.dimensions);
      EXPECT_EQ(sample.examples, static_cast<int64_t>(d * std::log(d)));
    }
  }
}

// Projects a vector kTrials times and counts how often its squared length changes by more than the
// factor 1 ± e. The theorems allow this with probability δ = 0.001. The count may be as large
// as AreAsRareAs allows. The true probability is a tail of the χ² distribution. By this tail
// (scipy), 254 dimensions are enough. The theorems require 483 (literal) and 423 (derived). With a
// third of 483 and of 423 dimensions, the true probability is 0.0077 and 0.0122, and the test must
// fail.
TEST(ProjectionBoundsTest, LengthsAreKeptAsOftenAsStated) {
  constexpr int kTrials = 6000;
  constexpr double kE = 0.3;
  constexpr double kDelta = 0.001;
  const RandomStream normals(11, StreamId::kProjection);
  uint64_t index = 0;
  const auto holds = [&](int64_t n) {
    int lost = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      double square = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double w = normals.Normal(index++);
        square += w * w;
      }
      lost += std::abs(square / static_cast<double>(n) - 1) > kE ? 1 : 0;
    }
    return AreAsRareAs(kDelta, lost, kTrials);
  };
  EXPECT_TRUE(holds(254));
  for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
    const int64_t n = LengthDimensions(tier, kE, kDelta).value();
    EXPECT_EQ(n, tier == Tier::kLiteral ? 483 : 423);
    EXPECT_TRUE(holds(n));
    EXPECT_FALSE(holds(n / 3)) << n;
  }
}

// The effect of a matrix on unit vectors w and x with a given cosine. `w` and `x` are their squared
// lengths after the multiplication. `difference` is the squared length of w − x after the
// multiplication, divided by its value before.
struct KeptLengths {
  double w, x, difference;

  double InnerProduct(double c) const { return (w + x - difference * (2 - 2 * c)) / 2; }
  double Cosine(double c) const { return InnerProduct(c) / std::sqrt(w * x); }
};

// Returns squared lengths within 1 ± e: the corners of this cube, and random points in it.
std::vector<KeptLengths> LengthsWithin(double e, double c) {
  std::vector<KeptLengths> all;
  for (int corner = 0; corner < 8; ++corner) {
    all.push_back({corner % 2 == 0 ? 1 - e : 1 + e, corner / 2 % 2 == 0 ? 1 - e : 1 + e,
                   corner / 4 == 0 ? 1 - e : 1 + e});
  }
  const RandomStream uniform(12, StreamId::kProjection);
  const auto draw = [&](uint64_t i) { return 1 - e + 2 * e * uniform.UniformOpen01(i); };
  for (uint64_t i = 0; i < 3000; i += 3) all.push_back({draw(i), draw(i + 1), draw(i + 2)});
  // No matrix gives lengths whose cosine is outside of [−1, 1].
  std::erase_if(all, [c](const KeptLengths& k) { return std::abs(k.Cosine(c)) > 1; });
  return all;
}

constexpr double kCosines[] = {0.95, 0.527, 0.1, -0.062, -0.827};

// Theorem 5: if the squared lengths of w, x and w − x are kept within 1 ± e, the cosine is within
// the theorem's bounds. This is tested for acute and for obtuse angles. The lower bound is attained
// wherever it is above −1. Bounds that are computed with e/3 instead of e must be violated.
TEST(ProjectionBoundsTest, AnglesAreKeptWheneverLengthsAre) {
  const double e = 0.4;
  for (const double c : kCosines) {
    SCOPED_TRACE(c);
    double lowest = 1;
    double highest = -1;
    for (const KeptLengths& kept : LengthsWithin(e, c)) {
      lowest = std::min(lowest, kept.Cosine(c));
      highest = std::max(highest, kept.Cosine(c));
    }
    EXPECT_GE(lowest, LowestCosine(c, e) - 1e-12);
    EXPECT_LE(highest, HighestCosine(c, e) + 1e-12);
    if (LowestCosine(c, e) > -1) {
      EXPECT_NEAR(lowest, LowestCosine(c, e), 1e-12);
    }
    if (LowestCosine(c, e / 3) > -1) {
      EXPECT_LT(lowest, LowestCosine(c, e / 3));
    }
    EXPECT_GT(highest, HighestCosine(c, e / 3));
  }
}

// The remark after Theorem 5: bounds on the inner product are the theorem's lower bound on the
// cosine times 1 − e and its upper bound times 1 + e. c is the cosine before the multiplication.
// The lower bound is attained. The largest possible inner product is c + e(2 − c). The upper bound
// exceeds this by 1 − √(1 − e²).
TEST(ProjectionBoundsTest, InnerProductsAreKeptWheneverLengthsAre) {
  const double e = 0.4;
  const auto low = [](double c, double e) { return (1 - e) * LowestCosine(c, e); };
  const auto high = [](double c, double e) { return (1 + e) * HighestCosine(c, e); };
  for (const double c : kCosines) {
    SCOPED_TRACE(c);
    double lowest = 2;
    double highest = -2;
    for (const KeptLengths& kept : LengthsWithin(e, c)) {
      lowest = std::min(lowest, kept.InnerProduct(c));
      highest = std::max(highest, kept.InnerProduct(c));
    }
    EXPECT_GE(lowest, low(c, e) - 1e-12);
    EXPECT_LE(highest, high(c, e) + 1e-12);
    if (LowestCosine(c, e) > -1) {
      EXPECT_NEAR(lowest, low(c, e), 1e-12);
    }
    EXPECT_NEAR(highest, c + e * (2 - c), 1e-12);
    EXPECT_LT(lowest, low(c, e / 3));
    EXPECT_GT(highest, high(c, e / 3));
  }
}

// Shows that a step in the proof of Theorem 5 is wrong, although the theorem holds. The first
// inequality of equation 9 states ‖Rx − Rw‖² <= ‖√(1−e)·Rx/‖Rx‖ − √(1+e)·Rw/‖Rw‖‖² for unit vectors
// x and w. Take a matrix R that multiplies the squared lengths of x, w and x − w by 1 + e. For this
// R the inequality is false. But all three squared lengths are within 1 ± e, and the cosine is
// unchanged.
TEST(ProjectionBoundsTest, EquationNineIsBrokenWhereTheoremFiveHolds) {
  const double e = 0.3;
  const double c = 0.1;
  const double left = (1 + e) * (2 - 2 * c);
  const double right = (1 - e) + (1 + e) - 2 * std::sqrt((1 - e) * (1 + e)) * c;
  EXPECT_GT(left, right);
  EXPECT_GE(c, LowestCosine(c, e));
  EXPECT_LE(c, HighestCosine(c, e));
}

}  // namespace
}  // namespace phimap::testing
