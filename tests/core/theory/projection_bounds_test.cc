#include "core/theory/projection_bounds.h"

#include <cmath>

#include "core/random/random_stream.h"
#include "core/theory/cosine_law.h"
#include "gtest/gtest.h"

namespace phimap {
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

// Theorem 6's remark: its bound may be negative, and says nothing then. It is not cut off at 0.
TEST(ProjectionBoundsTest, TheMarginOfADataSetMayBeNegative) {
  EXPECT_NEAR(DataSetMargin(Tier::kLiteral, 0.1, 0.5), -1.9, 1e-15);
  EXPECT_NEAR(DataSetMargin(Tier::kDerived, 0.1, 0.5), -1.7, 1e-15);
}

TEST(ProjectionBoundsTest, ProjectedKernelsHaveTheirGoldenValue) {
  // β = 1: with probability 1 − 1/n.
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

// Of T projections of two vectors, at most the stated share leaves the bounds: six sigma over it is
// a bug. n is small, so that the share is near 1/2 and bounds would show if they were wrong.
class DrawnProjections {
 public:
  // Lengths of R·w, R·x and R·(w − x) relative to before, and the cosine, for a cosine `c`.
  struct Result {
    double w, x, difference, cosine;
  };
  Result Draw(int n, double c) {
    const double s = std::sqrt(1 - c * c);
    double ww = 0, wx = 0, xx = 0;
    for (int i = 0; i < n; ++i) {
      const double w = normals_.Normal(index_++);
      const double x = c * w + s * normals_.Normal(index_++);
      ww += w * w;
      wx += w * x;
      xx += x * x;
    }
    return {ww / n, xx / n, (ww - 2 * wx + xx) / n / (2 - 2 * c), wx / std::sqrt(ww * xx)};
  }

 private:
  RandomStream normals_{11, StreamId::kProjection};
  uint64_t index_ = 0;
};

TEST(ProjectionBoundsTest, LengthsAreKeptAsOftenAsStated) {
  DrawnProjections draws;
  constexpr int kTrials = 4000;
  const double e = 0.5;
  const double delta = 0.2;
  for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
    const int n = static_cast<int>(LengthDimensions(tier, e, delta).value());
    int lost = 0;
    for (int i = 0; i < kTrials; ++i) lost += std::abs(draws.Draw(n, 0).w - 1) > e;
    EXPECT_LE(lost, delta * kTrials + 6 * std::sqrt(delta * kTrials)) << n;
  }
}

// Theorem 5: whenever the three lengths are kept the cosine is within its bounds, for acute and
// obtuse angles alike.
TEST(ProjectionBoundsTest, AnglesAreKeptWheneverLengthsAre) {
  DrawnProjections draws;
  const double e = 0.4;
  for (double c : {0.95, 0.527, 0.1, -0.062, -0.827}) {
    int kept = 0;
    for (int i = 0; i < 3000; ++i) {
      const DrawnProjections::Result r = draws.Draw(12, c);
      if (std::abs(r.w - 1) > e || std::abs(r.x - 1) > e || std::abs(r.difference - 1) > e) {
        continue;
      }
      ++kept;
      EXPECT_GE(r.cosine, LowestCosine(c, e)) << c;
      EXPECT_LE(r.cosine, HighestCosine(c, e)) << c;
    }
    EXPECT_GT(kept, 300) << c;
  }
}

// The first inequality of equation 9, ‖Rx − Rw‖² <= ‖√(1−e)·Rx/‖Rx‖ − √(1+e)·Rw/‖Rw‖‖² for unit x
// and w, is false where R makes both squared lengths, and that of the difference, 1 + e. All three
// are within 1 ± e and the cosine is what it was: the theorem holds.
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
}  // namespace phimap
