#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/learn/row_order.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

std::vector<int64_t> Numbers(int64_t n) {
  std::vector<int64_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<int64_t> Sorted(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST(RowSplitTest, AShareOfTheRowsIsTestedAndTheOthersAreLearntFrom) {
  for (const int64_t n : {2, 3, 10, 101}) {
    for (const double held_out : {0.001, 0.3, 0.5, 0.999}) {
      const RowSplit split = HeldOutSplit(n, held_out, 1);
      EXPECT_EQ(Sorted(split.order), Numbers(n));
      EXPECT_EQ(split.tested(),
                std::clamp<int64_t>(std::llround(held_out * static_cast<double>(n)), 1, n - 1));
    }
  }
}

TEST(RowSplitTest, FoldsTestEachRowOnceAndAreOfOneSize) {
  for (const int64_t n : {2, 7, 100, 103}) {
    for (const int folds : {2, 3, 7, 100}) {
      if (folds > n) continue;
      std::vector<int64_t> tested;
      for (int fold = 0; fold < folds; ++fold) {
        const RowSplit split = FoldSplit(n, folds, fold, 5);
        EXPECT_EQ(Sorted(split.order), Numbers(n));
        EXPECT_GE(split.tested(), n / folds);
        EXPECT_LE(split.tested(), n / folds + 1);
        tested.insert(tested.end(), split.order.begin() + split.trained, split.order.end());
      }
      EXPECT_EQ(Sorted(tested), Numbers(n));
    }
  }
}

TEST(RowSplitTest, TheSeedDecidesAndNothingElse) {
  EXPECT_EQ(HeldOutSplit(50, 0.3, 7).order, HeldOutSplit(50, 0.3, 7).order);
  EXPECT_NE(HeldOutSplit(50, 0.3, 7).order, HeldOutSplit(50, 0.3, 8).order);
  EXPECT_EQ(FoldSplit(50, 5, 2, 7).order, FoldSplit(50, 5, 2, 7).order);
  EXPECT_NE(FoldSplit(50, 5, 2, 7).order, FoldSplit(50, 5, 2, 8).order);
}

// Each of 10 rows is held out with probability 3/10. Over 4,000 seeds, its count has mean 1,200 and
// standard deviation 29. It may deviate by six standard deviations, 174.
TEST(RowSplitTest, EveryRowIsAsLikelyToBeTested) {
  std::vector<int> count(10);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const RowSplit split = HeldOutSplit(10, 0.3, seed);
    for (int64_t i = split.trained; i < 10; ++i) ++count[split.order[i]];
  }
  for (const int c : count) EXPECT_NEAR(c, 1200, 174);
}

TEST(RowSplitTest, RowsGoFromAnyOrderToAnyOther) {
  for (const int64_t n : {1, 2, 5, 64}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<int64_t> from =
          FirstOfPermutation(n, n, RandomStream(seed, StreamId::kSplit));
      const std::vector<int64_t> to =
          FirstOfPermutation(n, n, RandomStream(seed, StreamId::kLandmarks));
      Matrix<double> rows(n, 3);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < 3; ++j) rows(i, j) = static_cast<double>(10 * from[i] + j);
      }
      ReorderRows(from, to, rows.view());
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(rows(i, j), static_cast<double>(10 * to[i] + j));
      }
    }
  }
}

}  // namespace
}  // namespace phimap::testing
