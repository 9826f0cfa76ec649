#include "client/cli/bench/bench_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace phimap::cli {
namespace {

// Computes Quantile by its definition, from all values.
int64_t ExactQuantile(std::vector<int64_t> values, double q) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<int64_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::max<int64_t>(1, rank) - 1];
}

TEST(BenchHistogramTest, NothingIsZero) {
  const BenchHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.Quantile(0.99), 0);
}

TEST(BenchHistogramTest, SmallNumbersAreExact) {
  for (int64_t value = 0; value < 256; ++value) {
    BenchHistogram histogram;
    histogram.Record(value);
    histogram.Record(1000);
    EXPECT_EQ(histogram.Quantile(0.5), value);
  }
}

TEST(BenchHistogramTest, EveryMagnitudeIsWithinTheRelativeError) {
  for (int bit = 8; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit;
    for (const int64_t value : {power - 1, power, power + 1, power + power / 3}) {
      BenchHistogram histogram;
      histogram.Record(value);
      histogram.Record(std::numeric_limits<int64_t>::max());
      const double error = std::abs(static_cast<double>(histogram.Quantile(0.5) - value));
      EXPECT_LE(error, BenchHistogram::kRelativeError * static_cast<double>(value)) << value;
    }
  }
}

TEST(BenchHistogramTest, QuantilesOfManyNumbersAreWithinTheRelativeError) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(std::log(80'000.0), 2);
  BenchHistogram histogram;
  std::vector<int64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<int64_t>(latency(random)));
    histogram.Record(values.back());
  }
  for (const double q : {0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto exact = static_cast<double>(ExactQuantile(values, q));
    EXPECT_NEAR(static_cast<double>(histogram.Quantile(q)), exact,
                BenchHistogram::kRelativeError * exact)
        << q;
  }
  EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.Quantile(1), histogram.max());
}

TEST(BenchHistogramTest, NoQuantileIsAboveTheMaximum) {
  BenchHistogram histogram;
  for (int i = 0; i < 100; ++i) histogram.Record(1'000'000'007);
  for (const double q : {0.0, 0.5, 0.999, 1.0}) EXPECT_LE(histogram.Quantile(q), histogram.max());
}

TEST(BenchHistogramTest, MergingIsRecordingAll) {
  BenchHistogram left;
  BenchHistogram right;
  BenchHistogram all;
  for (int i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? left : right).Record(i * 977);
    all.Record(i * 977);
  }
  left.Merge(right);
  EXPECT_EQ(left.count(), all.count());
  EXPECT_EQ(left.max(), all.max());
  EXPECT_DOUBLE_EQ(left.mean(), all.mean());
  for (const double q : {0.1, 0.5, 0.99}) EXPECT_EQ(left.Quantile(q), all.Quantile(q));
}

// With 10,000 values, ten are above p99.9. With 9,999, there are only nine.
TEST(BenchHistogramTest, APercentileThatFewerThanTenValuesLieAboveTellsNothing) {
  BenchHistogram histogram;
  EXPECT_FALSE(histogram.Tells(0.5));
  for (int i = 0; i < 9'999; ++i) histogram.Record(i);
  EXPECT_FALSE(histogram.Tells(0.999));
  EXPECT_TRUE(histogram.Tells(0.99));
  histogram.Record(0);
  EXPECT_TRUE(histogram.Tells(0.999));
}

TEST(BenchHistogramTest, TheShareBelowAValueLeavesOutTheValueItself) {
  BenchHistogram histogram;
  EXPECT_EQ(histogram.ShareBelow(5), 1);
  for (const int64_t value : {int64_t{1}, int64_t{2}, int64_t{100}, int64_t{4'900'000},
                              int64_t{5'100'000}, int64_t{7'000'000'000}}) {
    histogram.Record(value);
  }
  EXPECT_EQ(histogram.ShareBelow(1), 0);
  EXPECT_DOUBLE_EQ(histogram.ShareBelow(2), 1.0 / 6);
  EXPECT_DOUBLE_EQ(histogram.ShareBelow(5'000'000), 4.0 / 6);
  EXPECT_EQ(histogram.ShareBelow(int64_t{1} << 40), 1);
}

TEST(BenchHistogramTest, ANegativeDurationCountsAsZero) {
  BenchHistogram histogram;
  histogram.Record(-5);
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_EQ(histogram.max(), 0);
}

}  // namespace
}  // namespace phimap::cli
