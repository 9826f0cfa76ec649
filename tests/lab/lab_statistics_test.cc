#include <cmath>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

TEST(LabStatisticsTest, AreTheirDefinitions) {
  const std::vector<double> numbers = {4, 1, 2, 5};
  EXPECT_DOUBLE_EQ(Mean(numbers), 3);
  EXPECT_DOUBLE_EQ(Deviation(numbers), std::sqrt(10.0 / 3));
  EXPECT_DOUBLE_EQ(StandardError(numbers), std::sqrt(10.0 / 12));
  EXPECT_DOUBLE_EQ(Median(numbers), 3);
  EXPECT_DOUBLE_EQ(Median({3, 9, 1}), 3);
  EXPECT_EQ(Deviation({7}), 0);
}

// Runs have an error of .01 (1 of 100 rows) with probability .1 and no error otherwise. So the mean
// of ten runs is k/1000 with the binomial probability of k: P[k > 4] = .00163, P[k > 5] = .00015.
// Hence the quantile at .999 is .005, and the quantile at .001 is 0.
TEST(LabStatisticsTest, CentralMeansAreTheQuantilesOfTheBinomialLaw) {
  std::vector<double> runs(200, 0.0);
  for (int i = 0; i < 20; ++i) runs[i * 10] = 0.01;
  const Interval interval = CentralMeans(runs, 10, 1);
  EXPECT_NEAR(interval.high, 0.005, 1e-12);
  EXPECT_EQ(interval.low, 0);
  EXPECT_TRUE(interval.Contains(0.005));
  EXPECT_FALSE(interval.Contains(0.006));
}

// The mean of 25 normal numbers has a fifth of their deviation. The .999 quantile of the normal
// distribution is 3.090.
TEST(LabStatisticsTest, CentralMeansOfNormalRunsAreThoseOfTheNormalLaw) {
  const RandomStream random(1, StreamId::kLabRows);
  std::vector<double> runs;
  for (int i = 0; i < 2000; ++i) runs.push_back(5 + random.Normal(static_cast<uint64_t>(i)));
  const Interval interval = CentralMeans(runs, 25, 2);
  EXPECT_NEAR(interval.high - interval.low, 2 * 3.090 / 5, 0.06);
  EXPECT_NEAR((interval.high + interval.low) / 2, 5, 0.08);
}

// The expected values are published values of Wilson's interval for 0 and 5 of 10.
TEST(LabStatisticsTest, SharesHaveWilsonsInterval) {
  EXPECT_EQ(ShareInterval(0, 10).low, 0);
  EXPECT_NEAR(ShareInterval(0, 10).high, 0.2775, 5e-5);
  EXPECT_NEAR(ShareInterval(5, 10).low, 0.2366, 5e-5);
  EXPECT_NEAR(ShareInterval(5, 10).high, 0.7634, 5e-5);
}

TEST(LabStatisticsTest, SlopesOfPowersAreTheirExponents) {
  const std::vector<double> x = {1, 2, 5, 30};
  std::vector<double> y;
  for (const double at : x) y.push_back(7 * std::pow(at, -1.5));
  EXPECT_NEAR(LogLogSlope(x, y), -1.5, 1e-12);
}

}  // namespace
}  // namespace phimap::lab
