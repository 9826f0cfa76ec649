// Compares the linear SVM with liblinear's own program, and tests its optimality conditions.
#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/learn/svm_tool.h"

namespace phimap {
namespace {

using testing::ErrorOn;
using testing::Every;
using testing::LabeledRows;
using testing::MustMake;
using testing::MustTrain;
using testing::NoisyRows;
using testing::RealData;

struct LinearToolModel {
  std::vector<int> labels;
  // One row for each feature and a last row for the bias. A row has one number for each class, but
  // only one number if there are two classes.
  std::vector<std::vector<double>> w;
};

LinearToolModel ReadLinearToolModel(const std::string& path) {
  LinearToolModel model;
  bool weights = false;
  for (const std::string& line : testing::LinesOf(path)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (weights) {
      std::vector<double> row;
      for (const std::string& word : words) {
        row.push_back(0);
        EXPECT_TRUE(absl::SimpleAtod(word, &row.back())) << word;
      }
      model.w.push_back(std::move(row));
    } else if (words[0] == "label") {
      for (size_t i = 1; i < words.size(); ++i) model.labels.push_back(std::stoi(words[i]));
    }
    weights = weights || words[0] == "w";
  }
  return model;
}

LinearToolModel TrainWithTool(const LabeledRows& rows, const std::string& options) {
  const testing::ScratchFolder folder;
  testing::WriteSvmFile(rows, folder.File("rows"));
  testing::MustRun(absl::StrCat(PHIMAP_LIBLINEAR_TRAIN, " -s 2 ", options, " ", folder.File("rows"),
                                " ", folder.File("model")));
  return ReadLinearToolModel(folder.File("model"));
}

// With two classes, liblinear's program solves exactly the problem that we pass to its library.
TEST(LinearSvmTest, TwoClassesAreTheModelOfLiblinearsProgram) {
  for (const char* name : {"ionosphere.csv", "cancer.csv", "spam.csv"}) {
    const LabeledRows rows = RealData(name);
    const LinearToolModel tool = TrainWithTool(rows, "-c 2 -e 0.01 -B 1");
    const std::unique_ptr<const Model> model =
        MustTrain("linear_svm(C=2, tolerance=0.01, bias=1)", rows, 1);
    const LinearWeights& weights = *model->linear();
    ASSERT_EQ(tool.w.size(), static_cast<size_t>(rows.rows.cols() + 1)) << name;
    ASSERT_EQ(tool.labels.size(), 2u);
    for (int64_t k = 0; k <= rows.rows.cols(); ++k) {
      const double expected = tool.labels[0] * tool.w[k][0];
      const double actual = k < rows.rows.cols() ? weights.weights(1, k) : weights.intercepts[1];
      EXPECT_NEAR(actual, expected, 1e-12) << name << " column " << k;
      const double other = k < rows.rows.cols() ? weights.weights(0, k) : weights.intercepts[0];
      EXPECT_EQ(other, -actual);
    }
  }
}

// With many classes, liblinear's program adds up the rows in another order. Newton steps amplify
// differences in the last bits by the condition number of the Hessian, about 1e3 here. So 1e-8 is a
// generous tolerance.
TEST(LinearSvmTest, ManyClassesAreTheModelOfLiblinearsProgram) {
  const LabeledRows rows = Every(RealData("letter.csv"), 0, 5);
  const LinearToolModel tool = TrainWithTool(rows, "-c 1 -e 0.001");
  const std::unique_ptr<const Model> model =
      MustTrain("linear_svm(C=1, tolerance=0.001, bias=0)", rows, 1);
  const LinearWeights& weights = *model->linear();
  ASSERT_EQ(tool.labels.size(), 26u);
  for (size_t c = 0; c < tool.labels.size(); ++c) {
    EXPECT_EQ(weights.intercepts[c], 0);
    for (int64_t k = 0; k < rows.rows.cols(); ++k) {
      EXPECT_NEAR(weights.weights(tool.labels[c], k), tool.w[k][c], 1e-8) << c << " " << k;
    }
  }
}

// At the minimum, w = 2C Σ max(0, 1 − y·(w·x))·y·x, summed over the rows x with labels y of 1 or
// −1. Each row x has an extra entry B for the intercept.
TEST(LinearSvmTest, TheGradientVanishes) {
  const LabeledRows rows = NoisyRows(400, 6, 3, 1);
  constexpr double kC = 0.7;
  constexpr double kB = 2;
  const std::unique_ptr<const Model> model =
      MustTrain("linear_svm(C=0.7, tolerance=1e-09, bias=2)", rows, 1);
  const LinearWeights& weights = *model->linear();
  for (int32_t y = 0; y < 3; ++y) {
    std::vector<double> gradient(7);
    for (int k = 0; k < 6; ++k) gradient[k] = weights.weights(y, k);
    gradient[6] = weights.intercepts[y] / kB;
    for (int64_t i = 0; i < 400; ++i) {
      const double label = rows.labels[i] == y ? 1 : -1;
      double score = weights.intercepts[y];
      for (int k = 0; k < 6; ++k) score += weights.weights(y, k) * rows.rows(i, k);
      const double loss = std::max(0.0, 1 - label * score);
      for (int k = 0; k < 6; ++k) gradient[k] -= 2 * kC * loss * label * rows.rows(i, k);
      gradient[6] -= 2 * kC * loss * label * kB;
    }
    // The solver stops at the latest when a step reduces the objective by less than 1e-12 of its
    // value, which is at most C·n = 280. Let g be the gradient and λ the largest eigenvalue of the
    // Hessian, with λ <= 1 + 2C Σ‖x‖² < 6,000. Then ‖g‖²/(2λ) <= 2.8e-10.
    for (const double g : gradient) EXPECT_NEAR(g, 0, 2e-3);
  }
}

// Tests a class without any row, and a class that has all rows.
TEST(LinearSvmTest, OneSidedProblemsAreSolvedToo) {
  LabeledRows rows = NoisyRows(50, 3, 2, 2);
  rows.classes = 3;
  const std::unique_ptr<const Model> three = MustTrain("linear_svm()", rows, 1);
  for (const double score : {three->linear()->intercepts[2]}) EXPECT_LT(score, -0.9);
  EXPECT_THAT(*three->Predict(rows.rows.view(), NeverStop), ::testing::Not(::testing::Contains(2)));
  std::fill(rows.labels.begin(), rows.labels.end(), 1);
  rows.classes = 2;
  EXPECT_EQ(ErrorOn(*MustTrain("linear_svm()", rows, 1), rows), 0);
  std::fill(rows.labels.begin(), rows.labels.end(), 0);
  EXPECT_EQ(ErrorOn(*MustTrain("linear_svm()", rows, 1), rows), 0);
}

// liblinear prints a line for each step through a function that all threads of the process share.
// Each thread must still find its own training in this function.
TEST(LinearSvmTest, ThreadsTrainBesideEachOtherToTheSameBits) {
  const LabeledRows rows = NoisyRows(300, 20, 5, 3);
  const auto train = [&] {
    const std::unique_ptr<const Model> model = MustTrain("linear_svm()", rows, 1);
    const Matrix<double>& w = model->linear()->weights;
    return std::vector<double>(w.data(), w.data() + w.size());
  };
  const std::vector<double> alone = train();
  std::vector<std::vector<double>> results(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) results[t] = train();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& result : results) EXPECT_EQ(result, alone);
}

// Stops training at each of its checkpoints in turn, including those within a problem. Training
// must return the error of that checkpoint and call no further one. The fractions of the earlier
// checkpoints must rise.
TEST(LinearSvmTest, TrainingStopsWithinAProblem) {
  const LabeledRows rows = NoisyRows(2000, 50, 2, 4);
  const std::unique_ptr<const Learner> learner =
      MustMake("linear_svm(C=1000, tolerance=1e-10, bias=1)");
  int total = 0;
  ASSERT_TRUE(learner
                  ->Train(rows.set(), 1,
                          [&](double) {
                            ++total;
                            return absl::OkStatus();
                          })
                  .ok());
  ASSERT_GT(total, 5);
  for (int stop = 1; stop <= total; ++stop) {
    int calls = 0;
    double last = -1;
    const absl::Status status =
        learner
            ->Train(rows.set(), 1,
                    [&](double fraction) {
                      EXPECT_GT(fraction, last);
                      EXPECT_LT(fraction, 1);
                      last = fraction;
                      return ++calls == stop ? absl::CancelledError("enough") : absl::OkStatus();
                    })
            .status();
    EXPECT_EQ(status, absl::CancelledError("enough"));
    EXPECT_EQ(calls, stop);
  }
}

}  // namespace
}  // namespace phimap
