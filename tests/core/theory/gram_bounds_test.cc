#include "core/theory/gram_bounds.h"

#include <cmath>
#include <vector>

#include "core/random/random_stream.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

constexpr GramLaw kSparse{.sampling = GramSampling::kSparsify, .m = 1000, .b = 2, .s = 10};
constexpr GramLaw kCoins{.sampling = GramSampling::kQuantise, .m = 1000, .b = 2};
constexpr GramLaw kBoth{.sampling = GramSampling::kBoth, .m = 1000, .b = 2, .s = 10};

// b√(s−1), b, b√s.
TEST(GramBoundsTest, DeviationsAreThoseOfThePaper) {
  EXPECT_DOUBLE_EQ(EntryDeviation(kSparse), 6);
  EXPECT_DOUBLE_EQ(EntryDeviation(kCoins), 2);
  EXPECT_DOUBLE_EQ(EntryDeviation(kBoth), 2 * std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(AmsNormBound(kSparse), 24 * std::sqrt(1000.0));
}

// With l = ln(2·1000/0.05): √(2vl) + (2/3)Ll.
TEST(GramBoundsTest, BernsteinHasItsVarianceAndItsLargestChange) {
  const double l = std::log(40000.0);
  const auto bound = [&](double v, double largest) {
    return std::sqrt(2 * v * l) + 2.0 / 3 * largest * l;
  };
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kSparse, 0.05), bound(36000, 18));
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kCoins, 0.05), bound(4000, 4));
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kBoth, 0.05), bound(40000, 22));
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kSparse, 0.05, 100), bound(900, 18));
  // An entry that is dropped half the time changes by b still.
  EXPECT_DOUBLE_EQ(BernsteinNormBound({.m = 1000, .b = 2, .s = 1.5}, 0.05), bound(2000, 2));
  EXPECT_EQ(BernsteinNormBound({.m = 1000, .b = 2, .s = 1}, 0.05), 0);
}

// The range of 0 and the values is [−1, 3]; a unit α of m = 50 entries. More than p·T of T draws
// may not miss by t: six sigma over that is a bug.
TEST(GramBoundsTest, RoundedExpansionsMissAsRarelyAsStated) {
  constexpr int kRows = 50;
  constexpr int kTrials = 3000;
  constexpr double kScale = 8;
  const RandomStream random(5, StreamId::kProjection);
  uint64_t index = 0;
  std::vector<double> alpha(kRows);
  std::vector<double> values(kRows);
  double square = 0;
  for (int i = 0; i < kRows; ++i) {
    alpha[i] = random.Normal(index++);
    square += alpha[i] * alpha[i];
    values[i] = 4 * random.UniformOpen01(index++) - 1;
  }
  for (double& a : alpha) a /= std::sqrt(square);
  for (const double t : {2.0, 4.0, 6.0}) {
    int missed = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      double change = 0;
      for (int i = 0; i < kRows; ++i) {
        const double size = std::abs(alpha[i]);
        if (size >= 1 / kScale) continue;
        const bool kept = random.UniformOpen01(index++) < kScale * size;
        change += ((kept ? std::copysign(1 / kScale, alpha[i]) : 0) - alpha[i]) * values[i];
      }
      missed += std::abs(change) >= t;
    }
    const double p = RoundingProbability(kRows, 4, kScale, t);
    EXPECT_LE(missed, kTrials * p + 6 * std::sqrt(kTrials * p)) << t;
  }
  EXPECT_EQ(RoundingProbability(kRows, 4, kScale, 0), 1);
}

// 2c√m/(εT).
TEST(GramBoundsTest, TheScaleOfTheoremFiveGrowsWithTheRootOfTheRows) {
  EXPECT_DOUBLE_EQ(RoundingScale(400, 1, 0.1, 0.5), 800);
  EXPECT_DOUBLE_EQ(RoundingScale(1600, 1, 0.1, 0.5), 1600);
}

// AMS Theorem 5: at s = 2c√m/(εT) fewer than 4cm/(εT) weights are left, and f̂ is within 1 ± ε of f
// or both are under T√ln m, but with probability 1/m³: never, in 300 draws. f of equal signs is
// over it, f of alternating ones is not.
TEST(GramBoundsTest, RoundingAtTheScaleOfTheoremFiveKeepsItsTwoPromises) {
  constexpr int kRows = 2000;
  constexpr double kEpsilon = 0.5;
  constexpr double kThreshold = 10;
  constexpr int kTrials = 300;
  const double trivial = kThreshold * std::sqrt(std::log(1.0 * kRows));
  ASSERT_LE(kThreshold, std::sqrt(kRows / std::log(1.0 * kRows)) / kEpsilon);
  const RandomStream random(6, StreamId::kProjection);
  uint64_t index = 0;
  std::vector<double> sizes(kRows);
  std::vector<double> values(kRows);
  double square = 0;
  for (int i = 0; i < kRows; ++i) {
    sizes[i] = 1 + random.UniformOpen01(index++);
    square += sizes[i] * sizes[i];
    values[i] = 0.7 + 0.3 * random.UniformOpen01(index++);
  }
  for (double& size : sizes) size /= std::sqrt(square);
  for (const bool alternating : {false, true}) {
    const auto broken = [&](double scale) {
      int count = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        double exact = 0;
        double rounded = 0;
        int left = 0;
        for (int i = 0; i < kRows; ++i) {
          const double value = alternating && i % 2 == 0 ? -values[i] : values[i];
          exact += sizes[i] * value;
          const bool large = sizes[i] >= 1 / scale;
          if (!large && random.UniformOpen01(index++) >= scale * sizes[i]) continue;
          rounded += (large ? sizes[i] : 1 / scale) * value;
          ++left;
        }
        EXPECT_EQ(exact < trivial, alternating);
        const bool both_trivial = exact < trivial && rounded < trivial;
        const bool near = std::abs(rounded - exact) <= kEpsilon * exact;
        const bool few = left < 4 * kRows / (kEpsilon * kThreshold);
        count += (both_trivial || near) && few ? 0 : 1;
      }
      return count;
    };
    const double scale = RoundingScale(kRows, 1, kEpsilon, kThreshold);
    EXPECT_EQ(broken(scale), 0);
    EXPECT_GT(broken(scale / 100), 0);        // weights too few
    EXPECT_EQ(broken(scale * 100), kTrials);  // all of them left
  }
}

}  // namespace
}  // namespace phimap
