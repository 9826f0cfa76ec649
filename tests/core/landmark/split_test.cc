#include "core/landmark/split.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(SplitTest, DefaultPoolRowsFollowLandmarksUpToTheBoundOfBytes) {
  struct {
    int64_t landmarks, columns, expected;
  } const cases[] = {
      {1, 1, 20000},          {1000, 16, 20000},
      {1001, 16, 20020},      {5000, 16, 100000},
      {1000, 1677, 20000},     // 256 MiB hold 20,008 rows
      {1000, 1678, 19996},     // and here 19,996
      {500, 65536, 512},       // 512 rows are 256 MiB
      {2000, 65536, 2000},     // all landmarks, although they exceed the bound
      {1677721, 1, 33554420},  // 20 rows for each landmark still fit
      {1677722, 1, 33554432}, {int64_t{1} << 58, 1, int64_t{1} << 58},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(DefaultPoolRows(c.landmarks, c.columns), c.expected)
        << c.landmarks << " landmarks of " << c.columns << " columns";
  }
}

TEST(SplitTest, HeldOutCountIsATenthOfTheStreamAndLeavesTheLandmarks) {
  struct {
    int64_t stream_rows, kept, landmarks, expected;
  } const cases[] = {
      {0, 0, 0, 0},
      {9, 9, 1, 0},
      {10, 10, 1, 1},
      {199, 199, 100, 19},
      {200, 200, 100, 20},
      {1000, 1000, 950, 50},  // landmarks have priority
      {1000, 1000, 1000, 0},
      {1000, 1000, 2000, 0},  // too few rows for the landmarks, so none are held out
      {19999, 19999, 500, 1999},
      {20000, 20000, 500, 2000},
      {int64_t{1} << 62, 22000, 1000, 2000},
      {int64_t{1} << 62, 22000, 21000, 1000},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(HeldOutCount(c.stream_rows, c.kept, c.landmarks), c.expected)
        << c.kept << " of " << c.stream_rows << " rows, " << c.landmarks << " landmarks";
  }
}

TEST(SplitTest, PartsAreDisjointAndHaveTheirSizes) {
  struct {
    int64_t stream_rows, kept, landmarks, pool_rows, pool, held_out;
  } const cases[] = {
      {0, 0, 10, 100, 0, 0},
      {5, 5, 10, 100, 5, 0},
      {100, 100, 10, 100, 90, 10},
      {100, 100, 10, 50, 50, 10},  // the 90 remaining rows are cut to a pool of 50
      {1000000, 2100, 10, 100, 100, 2000},
      {3000, 2100, 10, 100, 100, 300},
      {100, 100, 95, 100, 95, 5},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.kept);
    const SampleSplit split = SplitSample(c.stream_rows, c.kept, c.landmarks, c.pool_rows, 1);
    EXPECT_EQ(split.pool.size(), c.pool);
    EXPECT_EQ(split.held_out.size(), c.held_out);
    std::vector<int64_t> all = split.pool;
    all.insert(all.end(), split.held_out.begin(), split.held_out.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    if (!all.empty()) {
      EXPECT_GE(all.front(), 0);
      EXPECT_LT(all.back(), c.kept);
    }
  }
}

TEST(SplitTest, ReservoirHoldsPoolAndHeldOutRows) {
  const int64_t pool_rows = 20000;
  const int64_t capacity = ReservoirCapacity(pool_rows);
  EXPECT_EQ(capacity, 22000);
  EXPECT_EQ(SplitSample(1000000, capacity, 500, pool_rows, 1).pool.size(), pool_rows);
}

TEST(SplitTest, NeverChangesForASeed) {
  const SampleSplit split = SplitSample(40, 40, 4, 20, 42);
  EXPECT_THAT(split.held_out, ElementsAre(20, 27, 35, 1));
  ASSERT_EQ(split.pool.size(), 20);
  EXPECT_THAT(std::vector<int64_t>(split.pool.begin(), split.pool.begin() + 4),
              ElementsAre(16, 7, 37, 10));
}

TEST(SplitTest, DependsOnTheSeed) {
  EXPECT_EQ(SplitSample(500, 500, 10, 100, 3).pool, SplitSample(500, 500, 10, 100, 3).pool);
  EXPECT_NE(SplitSample(500, 500, 10, 100, 3).pool, SplitSample(500, 500, 10, 100, 4).pool);
}

// Each slot is held out with probability 1/10. Over T seeds, its count has mean T/10 and variance
// T·0.09. It may deviate by six standard deviations. Seeds are fixed.
TEST(SplitTest, EverySlotIsEquallyLikelyToBeHeldOut) {
  constexpr int kTrials = 10000;
  std::vector<int> counts(50);
  for (int seed = 0; seed < kTrials; ++seed) {
    for (int64_t slot : SplitSample(50, 50, 10, 50, seed).held_out) ++counts[slot];
  }
  for (int count : counts) EXPECT_NEAR(count, kTrials * 0.1, 6 * std::sqrt(kTrials * 0.09));
}

}  // namespace
}  // namespace phimap::testing
