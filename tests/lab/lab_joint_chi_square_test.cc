#include <cmath>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "lab/joint_chi_square.h"

namespace phimap::lab {
namespace {

constexpr JointPaper kPaper = {.runs = 10, .digit = 0.001};
constexpr int64_t kCells = 3;

// Errors of `count` runs: half of the runs make none, the others up to .1. The cells of a run err
// together, and rarely by themselves.
std::vector<std::vector<double>> Errors(int64_t count, RandomCursor& random) {
  std::vector<std::vector<double>> cells(kCells);
  for (int64_t i = 0; i < count; ++i) {
    const double shared =
        random.UniformBelow(2) == 0 ? 0 : static_cast<double>(random.UniformBelow(10)) / 100;
    for (std::vector<double>& cell : cells) {
      cell.push_back(random.UniformBelow(5) == 0 ? shared + 0.01 : shared);
    }
  }
  return cells;
}

std::vector<double> PrintedAfterTenRuns(RandomCursor& random) {
  std::vector<double> printed;
  for (const std::vector<double>& cell : Errors(kPaper.runs, random)) {
    double sum = 0;
    for (const double error : cell) sum += error;
    printed.push_back(std::round(sum / 10 * 1000) / 1000);
  }
  return printed;
}

JointTest TestOf(const std::vector<std::vector<double>>& runs, const std::vector<double>& printed) {
  return TestJointly({{.runs = {runs.begin(), runs.end()}, .printed = printed}}, kPaper, 7);
}

// p of a table with the same law is uniform: of 200 tables the share with p under .1 has a
// deviation of √(.1·.9/200) = .021, and three of them are .064. The statistic as a χ² with three
// degrees of freedom would not pass: the cells err together, so a quarter of the tables
// exceeds 6.25.
TEST(LabJointChiSquareTest, RejectsTablesOfTheSameLawAsOftenAsItSays) {
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  const std::vector<std::vector<double>> runs = Errors(1000, random);
  int64_t small = 0;
  int64_t as_chi_square = 0;
  for (int i = 0; i < 200; ++i) {
    const JointTest test = TestOf(runs, PrintedAfterTenRuns(random));
    EXPECT_EQ(test.cells, kCells);
    small += test.p < 0.1 ? 1 : 0;
    as_chi_square += test.chi_square > 6.251 ? 1 : 0;  // the .9 quantile of χ²₃
  }
  EXPECT_NEAR(static_cast<double>(small) / 200, 0.1, 0.064);
  EXPECT_GT(as_chi_square, 20 + 13);
}

// The mean is .0245 and the deviation of the mean of ten runs .0097.
TEST(LabJointChiSquareTest, RejectsATableThatErrsThreeTimesAsMuch) {
  RandomCursor random(RandomStream(2, StreamId::kLabRows));
  const std::vector<std::vector<double>> runs = Errors(1000, random);
  EXPECT_LT(TestOf(runs, {0.073, 0.073, 0.073}).p, 0.002);
  EXPECT_GT(TestOf(runs, {0.025, 0.024, 0.025}).p, 0.5);
}

// Two cells that nearly always err together differ in print: each is likely by itself.
TEST(LabJointChiSquareTest, StatisticIsTheSumOverTheCells) {
  const std::vector<std::vector<double>> runs = {{0, 0.02}, {0, 0.04}};
  // Means .01 and .02; variances 2·.0001 and 2·.0004, divided by ten, and 1e-6/12 of rounding.
  const JointTest test = TestOf(runs, {0.013, 0.016});
  EXPECT_NEAR(test.chi_square, 9e-6 / (2e-5 + 1e-6 / 12) + 16e-6 / (8e-5 + 1e-6 / 12), 1e-9);
}

}  // namespace
}  // namespace phimap::lab
