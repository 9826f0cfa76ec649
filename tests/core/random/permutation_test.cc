#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

std::vector<int64_t> First(int64_t n, int64_t k, uint64_t seed) {
  return FirstOfPermutation(n, k, RandomStream(seed, StreamId::kLandmarks));
}

TEST(PermutationTest, HoldsDistinctNumbersInRange) {
  for (int64_t n : {0, 1, 2, 3, 10, 1000}) {
    for (int64_t k : {int64_t{0}, n / 3, n}) {
      std::vector<int64_t> order = First(n, k, 7);
      ASSERT_EQ(order.size(), k);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(std::adjacent_find(order.begin(), order.end()), order.end());
      if (k > 0) {
        EXPECT_GE(order.front(), 0);
        EXPECT_LT(order.back(), n);
      }
    }
  }
}

TEST(PermutationTest, FewerAreAPrefixOfMore) {
  const std::vector<int64_t> all = First(100, 100, 3);
  const std::vector<int64_t> some = First(100, 17, 3);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
}

TEST(PermutationTest, NeverChangesForASeed) {
  EXPECT_THAT(First(1000, 6, 42), ElementsAre(445, 598, 117, 250, 897, 621));
}

// The 4! = 24 orders are equally likely. Their counts give a chi-square statistic with 23 degrees
// of freedom, which has mean 23 and variance 46. It may exceed its mean by six standard deviations:
// 23 + 6·√46 = 63.7. Seeds are fixed.
TEST(PermutationTest, AllOrdersAreEquallyLikely) {
  constexpr int kTrials = 48000;
  std::map<std::vector<int64_t>, int> counts;
  for (int seed = 0; seed < kTrials; ++seed) ++counts[First(4, 4, seed)];
  ASSERT_EQ(counts.size(), 24);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    chi_square += std::pow(count - kTrials / 24.0, 2) / (kTrials / 24.0);
  }
  EXPECT_LE(chi_square, 63.7);
}

}  // namespace
}  // namespace phimap::testing
