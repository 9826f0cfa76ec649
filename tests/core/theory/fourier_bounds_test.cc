#include "core/theory/fourier_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random/random_stream.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

TEST(FourierBoundsTest, HaveTheirGoldenValues) {
  EXPECT_EQ(FourierFeatures(FourierForm::kPhase, 0.1, 0.01), 4239);
  EXPECT_EQ(FourierFeatures(FourierForm::kSinCos, 0.1, 0.01), 2120);
}

TEST(FourierBoundsTest, SinesAndCosinesComeInPairs) {
  for (double a = 0.01; a <= 1; a += 0.013) {
    EXPECT_EQ(FourierFeatures(FourierForm::kSinCos, a, 0.01).value() % 2, 0) << a;
  }
}

// Draws kTrials sets of random Fourier features for inputs with one column. For two inputs at the
// distance r, each set gives an estimate of exp(−r²). Hold() counts the sets whose estimate has an
// error of at least 0.5. This count may exceed kDelta·kTrials by at most six standard deviations.
class FourierDraws {
 public:
  static constexpr double kOff = 0.5;
  static constexpr double kDelta = 0.01;
  static constexpr int kTrials = 4000;

  bool Hold(FourierForm form, int64_t dimensions, double r) {
    int missed = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const double value =
          form == FourierForm::kPhase ? Phase(dimensions, r) : Pairs(dimensions / 2, r);
      missed += std::abs(value - std::exp(-r * r)) >= kOff ? 1 : 0;
    }
    return missed <= kDelta * kTrials + 6 * std::sqrt(kDelta * kTrials);
  }

 private:
  double Phase(int64_t dimensions, double r) {
    double sum = 0;
    for (int64_t i = 0; i < dimensions; ++i) {
      const double omega = std::sqrt(2) * random_.Normal(index_++);
      const double b = 2 * std::acos(-1.0) * random_.UniformOpen01(index_++);
      sum += 2 * std::cos(b) * std::cos(omega * r + b);
    }
    return sum / static_cast<double>(dimensions);
  }
  double Pairs(int64_t pairs, double r) {
    double sum = 0;
    for (int64_t i = 0; i < pairs; ++i) {
      sum += std::cos(std::sqrt(2) * random_.Normal(index_++) * r);
    }
    return sum / static_cast<double>(pairs);
  }

  RandomStream random_{5, StreamId::kProjection};
  uint64_t index_ = 0;
};

// Hoeffding's inequality uses only the range of a term, which is [−2, 2] for the phase form and
// [−1, 1] for sines and cosines. The inequality allows for a variance of up to 4 and 1. The true
// variance is at most 1 and 1/2, which is reached for inputs that are far apart. Therefore
// Hoeffding's inequality requires 170 (phase form) and 86 features (sines and cosines), but 27 and
// 26 are enough. These two numbers are from the law of a sum of n cosines of uniform angles, whose
// characteristic function is J₀ⁿ (scipy). With 13 and 12 features, a share of 0.071 and 0.084 of
// the draws has too large an error.
TEST(FourierBoundsTest, KernelValuesAreKeptAsOftenAsStated) {
  struct {
    FourierForm form;
    int64_t stated, enough, too_few;
  } const cases[] = {{FourierForm::kPhase, 170, 27, 13}, {FourierForm::kSinCos, 86, 26, 12}};
  FourierDraws draws;
  for (const auto& c : cases) {
    EXPECT_EQ(FourierFeatures(c.form, FourierDraws::kOff, FourierDraws::kDelta), c.stated);
    for (const double r : {0.1, 0.8, 3.0}) EXPECT_TRUE(draws.Hold(c.form, c.stated, r)) << r;
    EXPECT_TRUE(draws.Hold(c.form, c.enough, 3));
    EXPECT_FALSE(draws.Hold(c.form, c.too_few, 3));
  }
}

TEST(FourierBoundsTest, TheErrorOfSoManyFeaturesIsTheInverse) {
  for (const FourierForm form : {FourierForm::kPhase, FourierForm::kSinCos}) {
    for (const double a : {0.02, 0.1, 0.7}) {
      const int64_t features = FourierFeatures(form, a, 0.01).value();
      EXPECT_LE(FourierError(form, features, 0.01), a);
      EXPECT_GT(FourierError(form, features - 2, 0.01), a);
    }
  }
}

// Tests the bound that holds for all pairs of rows at once. Computes the error K̂ − K over a grid
// of differences in a disc. The largest error may exceed the bound in at most δ·kTrials draws plus
// six standard deviations. The bound is derived with a net and Lipschitz constants, so it is loose:
// the largest error of a draw is 0.09 to 0.29 of the bound. A sixth of the bound is exceeded too
// often.
TEST(FourierBoundsTest, TheUniformBoundHoldsForAllPairsOfADisc) {
  constexpr int kTrials = 40;
  constexpr int kSide = 15;
  constexpr double kDelta = 0.1;
  const FourierRegion region{
      .form = FourierForm::kSinCos, .dimensions = 600, .columns = 2, .gamma = 0.5, .radius = 1};
  const double bound = FourierUniformError(region, kDelta);
  ASSERT_LT(bound, 1);
  EXPECT_GT(bound, FourierError(region.form, region.dimensions, kDelta));
  const RandomStream random(6, StreamId::kProjection);
  uint64_t index = 0;
  std::vector<double> largest(kTrials);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> omega(600);
    for (double& w : omega) w = random.Normal(index++);
    for (int i = 0; i < kSide * kSide; ++i) {
      // One coordinate of x − y, which is within 2 of 0.
      const double u = 4.0 * (i % kSide) / (kSide - 1) - 2;
      const double v = 4.0 * (i / kSide) / (kSide - 1) - 2;
      if (u * u + v * v > 4) continue;
      double sum = 0;
      for (int j = 0; j < 300; ++j) sum += std::cos(omega[2 * j] * u + omega[2 * j + 1] * v) / 300;
      largest[trial] = std::max(largest[trial], std::abs(sum - std::exp(-0.5 * (u * u + v * v))));
    }
  }
  const auto holds = [&](double share) {
    const auto missed = std::count_if(largest.begin(), largest.end(),
                                      [&](double error) { return error > share * bound; });
    return static_cast<double>(missed) <= kDelta * kTrials + 6 * std::sqrt(kDelta * kTrials);
  };
  EXPECT_TRUE(holds(1));
  EXPECT_FALSE(holds(1.0 / 6));
}

TEST(FourierBoundsTest, TheUniformBoundGrowsWithTheRegionAndFallsWithTheFeatures) {
  FourierRegion region{
      .form = FourierForm::kPhase, .dimensions = 4096, .columns = 10, .gamma = 0.1, .radius = 3};
  const double bound = FourierUniformError(region, 0.05);
  region.radius = 6;
  const double wider = FourierUniformError(region, 0.05);
  EXPECT_GT(wider, bound);
  region.dimensions *= 4;
  EXPECT_LT(FourierUniformError(region, 0.05), 0.6 * wider);
  region.form = FourierForm::kSinCos;
  EXPECT_LT(FourierUniformError(region, 0.05), 0.3 * wider);
}

}  // namespace
}  // namespace phimap
