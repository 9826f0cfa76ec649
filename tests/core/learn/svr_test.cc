// Compares support vector regression with liblinear's own program.
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/learn/svm_tool.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

LabeledRows LessTheirMean(LabeledRows rows, double mean) {
  for (double& target : rows.targets) target -= mean;
  return rows;
}

// The program does not subtract the mean of the targets, so the test does. It reads epsilon as a
// float32, so epsilon is one.
TEST(SvrTest, IsTheModelOfLiblinearsProgramOnTargetsLessTheirMean) {
  const LabeledRows rows = NoisyNumbers(500, 7, 3);
  const double mean = std::accumulate(rows.targets.begin(), rows.targets.end(), 0.0) / 500;
  const std::unique_ptr<const Model> model =
      MustTrain("svr(C=0.5, epsilon=0.25, tolerance=0.0001, bias=2)", rows, 1);
  const ScratchFolder folder;
  WriteSvmFile(LessTheirMean(NoisyNumbers(500, 7, 3), mean), folder.File("rows"));
  MustRun(absl::StrCat(PHIMAP_LIBLINEAR_TRAIN, " -s 11 -c 0.5 -p 0.25 -e 0.0001 -B 2 ",
                       folder.File("rows"), " ", folder.File("model")));
  const std::vector<std::string> lines = LinesOf(folder.File("model"));
  const LinearWeights& weights = *model->linear();
  ASSERT_EQ(weights.weights.rows(), 1);
  for (int64_t k = 0; k <= 7; ++k) {
    double expected = 0;
    ASSERT_TRUE(absl::SimpleAtod(lines[lines.size() - 8 + k], &expected)) << lines.back();
    const double actual = k < 7 ? weights.weights(0, k) : (weights.intercepts[0] - mean) / 2;
    EXPECT_NEAR(actual, expected, 1e-12) << k;
  }
}

// A constant that is added to all targets is added to all answers, however large.
TEST(SvrTest, TargetsFarFromZeroAreLearnedAsWell) {
  const LabeledRows rows = NoisyNumbers(300, 4, 5);
  const LabeledRows far = LessTheirMean(NoisyNumbers(300, 4, 5), -1e6);
  EXPECT_NEAR(RootMeanSquaredError(*MustTrain("svr()", far, 1), far),
              RootMeanSquaredError(*MustTrain("svr()", rows, 1), rows), 1e-6);
}

TEST(SvrTest, ErrorsWithinEpsilonCostNothing) {
  const LabeledRows rows = NoisyNumbers(100, 3, 9);
  const std::unique_ptr<const Model> model = MustTrain("svr(epsilon=1000)", rows, 1);
  for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(model->linear()->weights(0, k), 0);
}

}  // namespace
}  // namespace phimap::testing
