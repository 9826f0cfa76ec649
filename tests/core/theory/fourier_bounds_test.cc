#include "core/theory/fourier_bounds.h"

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

// exp(−γ r²) from D features, one input dimension: the stated share of T draws may miss it by a.
// Six sigma over that is a bug.
TEST(FourierBoundsTest, KernelValuesAreKeptAsOftenAsStated) {
  constexpr double kPi = 3.14159265358979323846;
  constexpr int kTrials = 2000;
  const double a = 0.3;
  const double delta = 0.2;
  const RandomStream random(5, StreamId::kProjection);
  uint64_t index = 0;
  for (double r : {0.1, 0.8, 3.0}) {
    const double kernel = std::exp(-r * r);
    const int phase = static_cast<int>(FourierFeatures(FourierForm::kPhase, a, delta).value());
    const int pairs = static_cast<int>(FourierFeatures(FourierForm::kSinCos, a, delta).value()) / 2;
    int missed_phase = 0;
    int missed_pairs = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      double sum = 0;
      for (int i = 0; i < phase; ++i) {
        const double omega = std::sqrt(2) * random.Normal(index++);
        const double b = 2 * kPi * random.UniformOpen01(index++);
        sum += 2 * std::cos(b) * std::cos(omega * r + b);
      }
      missed_phase += std::abs(sum / phase - kernel) >= a;
      sum = 0;
      for (int i = 0; i < pairs; ++i) sum += std::cos(std::sqrt(2) * random.Normal(index++) * r);
      missed_pairs += std::abs(sum / pairs - kernel) >= a;
    }
    const double most = delta * kTrials + 6 * std::sqrt(delta * kTrials);
    EXPECT_LE(missed_phase, most) << r;
    EXPECT_LE(missed_pairs, most) << r;
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

// K̂ − K over a grid of pairs in a disc, T draws: more than δ·T of them may not miss the bound; a
// bound that holds uniformly is far from tight, so that none does.
TEST(FourierBoundsTest, TheUniformBoundHoldsForAllPairsOfADisc) {
  constexpr int kTrials = 20;
  constexpr int kSide = 15;
  const FourierRegion region{
      .form = FourierForm::kSinCos, .dimensions = 600, .columns = 2, .gamma = 0.5, .radius = 1};
  const double bound = FourierUniformError(region, 0.1);
  ASSERT_LT(bound, 1);
  EXPECT_GT(bound, FourierError(region.form, region.dimensions, 0.1));
  const RandomStream random(6, StreamId::kProjection);
  uint64_t index = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> omega(600);
    for (double& w : omega) w = random.Normal(index++);
    for (int i = 0; i < kSide * kSide; ++i) {
      // Of x − y, which is within 2 of 0.
      const double u = 4.0 * (i % kSide) / (kSide - 1) - 2;
      const double v = 4.0 * (i / kSide) / (kSide - 1) - 2;
      if (u * u + v * v > 4) continue;
      double sum = 0;
      for (int j = 0; j < 300; ++j) sum += std::cos(omega[2 * j] * u + omega[2 * j + 1] * v) / 300;
      EXPECT_LE(std::abs(sum - std::exp(-0.5 * (u * u + v * v))), bound);
    }
  }
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
