#include "core/theory/gram_bounds.h"

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

constexpr GramLaw kSparse{.sampling = GramSampling::kSparsify, .m = 1000, .b = 2, .s = 10};
constexpr GramLaw kCoins{.sampling = GramSampling::kQuantise, .m = 1000, .b = 2};
constexpr GramLaw kBoth{.sampling = GramSampling::kBoth, .m = 1000, .b = 2, .s = 10};

// b is an upper bound on |K_ij|, and 1/s is the probability that sparsification keeps an entry. The
// bound on the standard deviation of an entry is b√(s−1) for sparsification, b for quantisation,
// and b√s for both.
TEST(GramBoundsTest, DeviationsAreThoseOfThePaper) {
  EXPECT_DOUBLE_EQ(EntryDeviation(kSparse), 6);
  EXPECT_DOUBLE_EQ(EntryDeviation(kCoins), 2);
  EXPECT_DOUBLE_EQ(EntryDeviation(kBoth), 6.324555320336759);
  EXPECT_DOUBLE_EQ(AmsNormBound(kSparse), 758.946638440411);
}

// The expected values are √(2vl) + (2/3)Ll with l = ln(2·1000/0.05). v is the variance and L the
// largest change. The five cases have (v, L) = (36000, 18), (4000, 4), (40000, 22), (900, 18) and
// (2000, 2). The values were computed in Python.
TEST(GramBoundsTest, BernsteinHasItsVarianceAndItsLargestChange) {
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kSparse, 0.05), 1000.6341160144552);
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kCoins, 0.05), 319.415859027357);
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kBoth, 0.05), 1076.1402746192884);
  EXPECT_DOUBLE_EQ(BernsteinNormBound(kSparse, 0.05, 100), 265.2680615772348);
  // For s under 2, the largest change of an entry is still b. It occurs when the entry is dropped.
  EXPECT_DOUBLE_EQ(BernsteinNormBound({.m = 1000, .b = 2, .s = 1.5}, 0.05), 220.00876017415416);
  EXPECT_EQ(BernsteinNormBound({.m = 1000, .b = 2, .s = 1}, 0.05), 0);
}

// The probability is 2·exp(−2(st)²/(mc²)), but at most 1. The arguments of the function are m, c, s
// and t, in this order. The expected values were computed in Python. mapping/gram_theorems_test
// shows that rounded features of kernel PCA deviate by t or more no more often than this.
TEST(GramBoundsTest, RoundingHasHoeffdingsProbability) {
  EXPECT_NEAR(RoundingProbability(50, 4, 8, 6), 0.006302223196888883, 1e-15);
  EXPECT_NEAR(RoundingProbability(100, 1, 5, 2.1), 0.22050105060897043, 1e-14);
  EXPECT_EQ(RoundingProbability(50, 4, 8, 0), 1);
}

// The scale is 2c√m/(εT).
TEST(GramBoundsTest, TheScaleOfTheoremFiveGrowsWithTheRootOfTheRows) {
  EXPECT_DOUBLE_EQ(RoundingScale(400, 1, 0.1, 0.5), 800);
  EXPECT_DOUBLE_EQ(RoundingScale(1600, 1, 0.1, 0.5), 1600);
}

}  // namespace
}  // namespace phimap::testing
