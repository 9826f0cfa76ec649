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

}  // namespace
}  // namespace phimap
