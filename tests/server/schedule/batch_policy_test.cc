#include "server/schedule/batch_policy.h"

#include <vector>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(BatchPolicyTest, TakesTheLongestPrefixWithinTheRowsAndAtLeastOneRequest) {
  const struct {
    std::vector<int64_t> rows;
    int64_t max_rows;
    int64_t taken;
  } cases[] = {
      {{1}, 64, 1},         {{1, 1, 1}, 64, 3},   {{1, 1, 1}, 2, 2},
      {{32, 32, 1}, 64, 2}, {{32, 33, 1}, 64, 1},  // requests are taken in order
      {{1000, 1}, 64, 1},                          // a large request is a batch by itself
      {{1, 1000}, 64, 1},  // a later large request does not delay a small one
      {{64, 1}, 64, 1},     {{1, 1}, 0, 1},
  };
  for (const auto& c : cases) EXPECT_EQ(RequestsInBatch(c.rows, c.max_rows), c.taken);
}

TEST(BatchPolicyTest, WorkersShareAQueueInTakesOfFourToSixtyFourRows) {
  const struct {
    int64_t queued_rows;
    int workers;
    int64_t max_rows;
  } cases[] = {
      {1, 1, 4},    {16, 1, 16},  {64, 1, 64},  {1000, 1, 64}, {1, 2, 4},
      {8, 2, 4},    {9, 2, 5},    {16, 2, 8},   {15, 2, 8},    {16, 64, 4},
      {128, 2, 64}, {129, 2, 64}, {256, 8, 32}, {0, 2, 4},     {int64_t{1} << 40, 3, 64},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(MaxRowsOfTake(c.queued_rows, c.workers), c.max_rows)
        << c.queued_rows << " rows, " << c.workers << " workers";
  }
}

TEST(BatchPolicyTest, AWorkerIsWorthwhileForEachFourRowsButNotWithoutARequest) {
  const struct {
    int64_t requests, rows, takes;
  } cases[] = {
      {0, 0, 0}, {1, 1, 1}, {4, 4, 1}, {5, 5, 2}, {16, 16, 4}, {1, 1000, 1}, {2, 1000, 2},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(WorthwhileBatches(c.requests, c.rows), c.takes) << c.requests << ", " << c.rows;
  }
}

TEST(BatchPolicyTest, ExpectsTheMeasuredRateAndOneANanosecondWithoutOne) {
  EXPECT_EQ(ExpectedTime(20'000, 0), absl::Microseconds(20));
  EXPECT_EQ(ExpectedTime(200'000, 1e10), absl::Microseconds(20));
  EXPECT_EQ(ExpectedTime(2'000, 1e8), absl::Microseconds(20));
  EXPECT_EQ(ExpectedTime(0, 0), absl::ZeroDuration());
}

TEST(BatchPolicyTest, TilesAreWholeBlocksOfAboutTheSameWork) {
  EXPECT_EQ(TileRows(1), 65536);
  EXPECT_EQ(TileRows(0), 65536);
  EXPECT_EQ(TileRows(100'000), 640);
  EXPECT_EQ(TileRows(1'000'000), 64);
  EXPECT_EQ(TileRows(INT64_MAX), 64);
}

TEST(BatchPolicyTest, BatchesAreHalvedThatAreLargeOrTakeLong) {
  EXPECT_TRUE(WorthHalving(kHandOverRows, absl::ZeroDuration()));
  EXPECT_FALSE(WorthHalving(kHandOverRows - 1, absl::Microseconds(100)));
  EXPECT_TRUE(WorthHalving(kHandOverRows - 1, absl::Microseconds(200)));
  EXPECT_TRUE(WorthHalving(kSharedBatchRows + 1, absl::Microseconds(150)));
  // With so few rows, half of them take nearly as long as all of them.
  EXPECT_FALSE(WorthHalving(kSharedBatchRows, absl::Microseconds(200)));
}

TEST(BatchPolicyTest, LargeRequestsOfACallWithAnswersToSendAreAWorkers) {
  EXPECT_TRUE(WorthAWorker(kBatchRows, true));
  EXPECT_FALSE(WorthAWorker(kBatchRows - 1, true));
  EXPECT_FALSE(WorthAWorker(kBatchRows, false));
}

}  // namespace
}  // namespace phimap::testing
