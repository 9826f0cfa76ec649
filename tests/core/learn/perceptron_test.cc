// Compares the perceptron with its defining recurrence.
#include <cmath>
#include <string>
#include <vector>

#include "core/learn/row_order.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Rosenblatt's rule for labels ±1 on (x, B), exactly as it is defined. The last weight is that of
// the constant B.
struct Rosenblatt {
  std::vector<double> w;
  int changes = 0;
};
Rosenblatt RunRosenblatt(const LabeledRows& examples, double b, int passes, uint64_t seed) {
  const int64_t columns = examples.rows.cols();
  Rosenblatt rule{.w = std::vector<double>(static_cast<size_t>(columns) + 1)};
  RowOrder order(examples.rows.rows(), seed);
  for (int pass = 0; pass < passes; ++pass) {
    for (const int64_t i : order.Next()) {
      const double label = examples.labels[i] == 1 ? 1 : -1;
      double sum = rule.w[columns] * b;
      for (int64_t k = 0; k < columns; ++k) sum += rule.w[k] * examples.rows(i, k);
      if (label * sum > 0) continue;
      for (int64_t k = 0; k < columns; ++k) rule.w[k] += label * examples.rows(i, k);
      rule.w[columns] += label * b;
      ++rule.changes;
    }
  }
  return rule;
}

TEST(PerceptronTest, TwoClassesAreRosenblattsRule) {
  const LabeledRows examples = NoisyRows(300, 7, 2, 3);
  const std::unique_ptr<const Model> model = MustTrain("perceptron(epochs=4)", examples, 9);
  const std::vector<double> w = RunRosenblatt(examples, 1, 4, 9).w;
  const LinearWeights& weights = *model->linear();
  EXPECT_EQ(weights.bias, 1);
  // The sums have about 500 terms, added in the same order as in the model. Halving the difference
  // of two classes is exact.
  for (int k = 0; k < 7; ++k) {
    EXPECT_NEAR((weights.weights(1, k) - weights.weights(0, k)) / 2, w[k], 1e-9);
  }
  EXPECT_EQ((weights.intercepts[1] - weights.intercepts[0]) / 2, w[7]);
}

// Compares many classes with Kesler's construction. Compares averaged weights with their
// definition, the sum of the weights after every row.
TEST(PerceptronTest, ManyClassesAndTheMeanAreTheirDefinitions) {
  constexpr int kClasses = 4;
  const LabeledRows examples = NoisyRows(200, 5, kClasses, 4);
  for (const bool average : {false, true}) {
    const std::unique_ptr<const Model> model =
        MustTrain(average ? "perceptron(epochs=3, average=true, bias=0.5)"
                          : "perceptron(epochs=3, average=false, bias=0.5)",
                  examples, 1);
    Matrix<double> w(kClasses, 6);
    Matrix<double> sum(kClasses, 6);
    RowOrder order(200, 1);
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const int64_t i : order.Next()) {
        const int32_t label = examples.labels[i];
        std::vector<double> scores;
        for (int y = 0; y < kClasses; ++y) {
          double score = w(y, 5) * 0.5;
          for (int k = 0; k < 5; ++k) score += w(y, k) * examples.rows(i, k);
          scores.push_back(score);
        }
        int rival = label == 0 ? 1 : 0;
        for (int y = 0; y < kClasses; ++y) {
          if (y != label && scores[y] > scores[rival]) rival = y;
        }
        if (scores[label] <= scores[rival]) {
          for (int k = 0; k < 6; ++k) {
            const double x = k == 5 ? 0.5 : examples.rows(i, k);
            w(label, k) += x;
            w(rival, k) -= x;
          }
        }
        for (int64_t k = 0; k < w.size(); ++k) sum.data()[k] += w.data()[k] / 600;
      }
    }
    const Matrix<double>& expected = average ? sum : w;
    const LinearWeights& weights = *model->linear();
    for (int y = 0; y < kClasses; ++y) {
      for (int k = 0; k < 5; ++k) EXPECT_NEAR(weights.weights(y, k), expected(y, k), 1e-9);
      EXPECT_NEAR(weights.intercepts[y], 0.5 * expected(y, 5), 1e-9);
    }
  }
}

// Novikoff's bound allows at most (R/γ)² changes for rows of length at most R with margin γ. Rows
// of length 1 with margin 0.2 cause at most 25 changes, and training ends with a pass without any
// change.
TEST(PerceptronTest, SeparableRowsEndWithinTheBoundOfNovikoff) {
  const LabeledRows examples = RowsWithMargin(500, 10, 0.2, 6);
  const std::unique_ptr<const Model> model =
      MustTrain("perceptron(epochs=1000, bias=0)", examples, 2);
  EXPECT_THAT(model->Summary(), StartsWith("0 changes in the last of "));
  int passes = 0;
  ASSERT_EQ(std::sscanf(model->Summary().c_str(), "0 changes in the last of %d passes", &passes),
            1);
  // The model does not report how often it changed. So the test runs the rule itself, which has the
  // same weights as the model after the same number of passes.
  const Rosenblatt rule = RunRosenblatt(examples, 0, passes, 2);
  EXPECT_LE(rule.changes, 25);
  EXPECT_GE(rule.changes, passes - 1);  // every pass except the last has at least one
  const Matrix<double>& weights = model->linear()->weights;
  for (int k = 0; k < 10; ++k) {
    EXPECT_NEAR((weights(1, k) - weights(0, k)) / 2, rule.w[k], 1e-9);
  }
  EXPECT_EQ(*model->Predict(examples.rows.view(), NeverStop), examples.labels);
}

// Shows that Novikoff's bound can be reached. The rows are the 25 axes e_i with labels y_i of 1 or
// −1. They have the margin 1/5 for the separator Σ_i y_i e_i/5, so the bound allows 25 changes.
// Each axis causes a change when it is first seen, so there are 25 changes. The magnitude of weight
// i is the number of changes caused by axis i.
TEST(PerceptronTest, TheBoundOfNovikoffIsReached) {
  LabeledRows examples{.rows = Matrix<double>(25, 25), .labels = {}, .classes = 2};
  for (int i = 0; i < 25; ++i) {
    examples.rows(i, i) = 1;
    examples.labels.push_back(i % 3 == 0 ? 1 : 0);
  }
  const std::unique_ptr<const Model> model =
      MustTrain("perceptron(epochs=1000, bias=0)", examples, 2);
  EXPECT_THAT(model->Summary(), StartsWith("0 changes in the last of 2 passes"));
  const Matrix<double>& weights = model->linear()->weights;
  for (int k = 0; k < 25; ++k) {
    EXPECT_EQ((weights(1, k) - weights(0, k)) / 2, k % 3 == 0 ? 1 : -1) << k;
  }
}

}  // namespace
}  // namespace phimap::testing
