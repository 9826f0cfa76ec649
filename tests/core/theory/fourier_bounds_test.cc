#include "core/theory/fourier_bounds.h"

#include <cmath>

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

}  // namespace
}  // namespace phimap
