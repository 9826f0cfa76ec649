// Compares the linear SVM and logistic regression with liblinear's own program, and tests their
// optimality conditions.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/learn/svm_tool.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

struct LinearToolModel {
  std::vector<int> labels;
  // One row for each feature and a last row for the bias. A row has one number for each class, but
  // only one number if there are two classes.
  std::vector<std::vector<double>> w;
};

LinearToolModel ReadLinearToolModel(const std::string& path) {
  LinearToolModel model;
  bool weights = false;
  for (const std::string& line : LinesOf(path)) {
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
  const ScratchFolder folder;
  WriteSvmFile(rows, folder.File("rows"));
  MustRun(absl::StrCat(PHIMAP_LIBLINEAR_TRAIN, " ", options, " ", folder.File("rows"), " ",
                       folder.File("model")));
  return ReadLinearToolModel(folder.File("model"));
}

// With two classes, liblinear's program solves exactly the problem that we pass to its library.
TEST(LinearSvmTest, TwoClassesAreTheModelOfLiblinearsProgram) {
  for (const char* name : {"ionosphere.csv", "cancer.csv", "spam.csv"}) {
    const LabeledRows rows = RealData(name);
    const LinearToolModel tool = TrainWithTool(rows, "-s 2 -c 2 -e 0.01 -B 1");
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

// "balanced" is n/(2·n_y), here 300/400 and 300/200. The program reads weights as float32, so each
// of these is one.
TEST(LinearSvmTest, WeightsOfClassesAreThoseOfLiblinearsProgram) {
  const LabeledRows all = RealData("ionosphere.csv");
  std::vector<int64_t> chosen;
  std::vector<int64_t> left = {100, 200};
  for (int64_t i = 0; i < all.rows.rows(); ++i) {
    if (left[all.labels[i]]-- > 0) chosen.push_back(i);
  }
  const LabeledRows rows = Subset(all, chosen);
  ASSERT_EQ(rows.rows.rows(), 300);
  const std::string balanced = "-w1 0.75 -w-1 1.5";
  const struct {
    const char* learner;
    std::string options;
  } kCases[] = {
      {"logistic(C=2)", "-s 0 -c 2 -e 0.01 -B 1"},
      {"logistic(C=2, class_weight=[3, 0.5])", "-s 0 -c 2 -e 0.01 -B 1 -w1 0.5 -w-1 3"},
      {"logistic(C=2, class_weight=balanced)", "-s 0 -c 2 -e 0.01 -B 1 " + balanced},
      {"linear_svm(C=2, class_weight=[3, 0.5])", "-s 2 -c 2 -e 0.01 -B 1 -w1 0.5 -w-1 3"},
      {"linear_svm(C=2, class_weight=balanced)", "-s 2 -c 2 -e 0.01 -B 1 " + balanced},
  };
  for (const auto& c : kCases) {
    const LinearToolModel tool = TrainWithTool(rows, c.options);
    const ScoreWeights weights = ToScores(*MustTrain(c.learner, rows, 1)->linear());
    ASSERT_EQ(tool.w.size(), static_cast<size_t>(rows.rows.cols() + 1)) << c.learner;
    for (int64_t k = 0; k <= rows.rows.cols(); ++k) {
      const double actual = k < rows.rows.cols() ? weights.weights(k, 0) : weights.intercepts[0];
      EXPECT_NEAR(actual, tool.labels[0] * tool.w[k][0], 1e-12) << c.learner << " column " << k;
    }
  }
}

// With many classes, liblinear's program adds up the rows in another order. Newton steps amplify
// differences in the last bits by the condition number of the Hessian, about 1e3 here. So 1e-8 is a
// generous tolerance.
TEST(LinearSvmTest, ManyClassesAreTheModelOfLiblinearsProgram) {
  const LabeledRows rows = Every(RealData("letter.csv"), 0, 5);
  const LinearToolModel tool = TrainWithTool(rows, "-s 2 -c 1 -e 0.001");
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

TEST(LinearSvmTest, ManyClassesWithWeightsAreTheLogisticModelOfLiblinearsProgram) {
  const LabeledRows rows = Every(RealData("letter.csv"), 0, 10);
  std::string weights;
  std::string options = "-s 0 -c 1 -e 0.001";
  for (int y = 0; y < 26; ++y) {
    absl::StrAppend(&weights, y == 0 ? "" : ", ", 1 + 0.5 * (y % 4));
    absl::StrAppend(&options, " -w", y, " ", 1 + 0.5 * (y % 4));
  }
  const LinearToolModel tool = TrainWithTool(rows, options);
  const std::unique_ptr<const Model> model = MustTrain(
      absl::StrCat("logistic(tolerance=0.001, bias=0, class_weight=[", weights, "])"), rows, 1);
  ASSERT_EQ(tool.labels.size(), 26u);
  for (size_t c = 0; c < tool.labels.size(); ++c) {
    for (int64_t k = 0; k < rows.rows.cols(); ++k) {
      EXPECT_NEAR(model->linear()->weights(tool.labels[c], k), tool.w[k][c], 1e-8) << c << " " << k;
    }
  }
}

TEST(LinearSvmTest, AWrongNumberOfClassWeightsIsRefused) {
  const LabeledRows rows = NoisyRows(50, 3, 3, 2);
  const absl::Status status =
      MustMake("logistic(class_weight=[1, 2])")->Train(rows.set(), 1, NeverStop).status();
  EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "LENGTH_MISMATCH", "class_weight",
                              HasSubstr("each of the 3 classes")));
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
  EXPECT_THAT(*three->Predict(rows.rows.view(), NeverStop), Not(Contains(2)));
  std::fill(rows.labels.begin(), rows.labels.end(), 1);
  rows.classes = 2;
  EXPECT_EQ(ErrorOn(*MustTrain("linear_svm()", rows, 1), rows), 0);
  std::fill(rows.labels.begin(), rows.labels.end(), 0);
  EXPECT_EQ(ErrorOn(*MustTrain("linear_svm()", rows, 1), rows), 0);
}

}  // namespace
}  // namespace phimap::testing
