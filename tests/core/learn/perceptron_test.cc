// Compares the perceptron with its defining recurrence.
#include <cmath>
#include <string>
#include <vector>

#include "core/learn/learner_spec.h"
#include "core/learn/row_order.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::LabeledRows;
using testing::MustMake;
using testing::MustTrain;
using testing::NoisyRows;
using testing::NormalRows;

// Runs Rosenblatt's rule for labels ±1 on (x, 1), exactly as it is defined.
TEST(PerceptronTest, TwoClassesAreRosenblattsRule) {
  const LabeledRows examples = NoisyRows(300, 7, 2, 3);
  const std::unique_ptr<const Model> model = MustTrain("perceptron(epochs=4)", examples, 9);
  std::vector<double> w(8);
  RowOrder order(300, 9);
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (const int64_t i : order.Next()) {
      const double label = examples.labels[i] == 1 ? 1 : -1;
      double sum = w[7];
      for (int k = 0; k < 7; ++k) sum += w[k] * examples.rows(i, k);
      if (label * sum > 0) continue;
      for (int k = 0; k < 7; ++k) w[k] += label * examples.rows(i, k);
      w[7] += label;
    }
  }
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
  Matrix<double> rows = NormalRows({.rows = 500, .cols = 10, .seed = 6});
  LabeledRows examples{.rows = Matrix<double>(500, 10), .labels = {}, .classes = 2};
  for (int i = 0; i < 500; ++i) {
    rows(i, 0) = 0;
    double norm = 0;
    for (int k = 0; k < 10; ++k) norm += rows(i, k) * rows(i, k);
    for (int k = 0; k < 10; ++k) examples.rows(i, k) = rows(i, k) * std::sqrt(0.96 / norm);
    examples.rows(i, 0) = i % 2 == 0 ? 0.2 : -0.2;
    examples.labels.push_back(i % 2 == 0 ? 1 : 0);
  }
  const std::unique_ptr<const Model> model =
      MustTrain("perceptron(epochs=1000, bias=0)", examples, 2);
  EXPECT_THAT(model->Summary(), ::testing::StartsWith("0 changes in the last of "));
  int passes = 0;
  ASSERT_EQ(std::sscanf(model->Summary().c_str(), "0 changes in the last of %d passes", &passes),
            1);
  // The model does not report how often it changed. So the test runs the rule itself, which has the
  // same weights as the model after the same number of passes.
  std::vector<double> w(10);
  RowOrder order(500, 2);
  int mistakes = 0;
  for (int pass = 0; pass < passes; ++pass) {
    for (const int64_t i : order.Next()) {
      const double label = examples.labels[i] == 1 ? 1 : -1;
      double sum = 0;
      for (int k = 0; k < 10; ++k) sum += w[k] * examples.rows(i, k);
      if (label * sum > 0) continue;
      for (int k = 0; k < 10; ++k) w[k] += label * examples.rows(i, k);
      ++mistakes;
    }
  }
  EXPECT_LE(mistakes, 25);
  EXPECT_GE(mistakes, passes - 1);  // every pass except the last has at least one
  const Matrix<double>& weights = model->linear()->weights;
  for (int k = 0; k < 10; ++k) EXPECT_NEAR((weights(1, k) - weights(0, k)) / 2, w[k], 1e-9);
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
  EXPECT_THAT(model->Summary(), ::testing::StartsWith("0 changes in the last of 2 passes"));
  const Matrix<double>& weights = model->linear()->weights;
  for (int k = 0; k < 25; ++k) {
    EXPECT_EQ((weights(1, k) - weights(0, k)) / 2, k % 3 == 0 ? 1 : -1) << k;
  }
}

TEST(PerceptronTest, SameSeedSameBitsAndAnotherSeedAnotherOrder) {
  const LabeledRows examples = NoisyRows(200, 5, 3, 8);
  const auto weights = [&](uint64_t seed) {
    const std::unique_ptr<const Model> model = MustTrain("perceptron()", examples, seed);
    const Matrix<double>& w = model->linear()->weights;
    return std::vector<double>(w.data(), w.data() + w.size());
  };
  EXPECT_EQ(weights(5), weights(5));
  EXPECT_NE(weights(5), weights(6));
}

TEST(PerceptronTest, TrainingStopsWhereTheCheckpointSays) {
  const LabeledRows examples = NoisyRows(1000, 5, 2, 8);
  const std::unique_ptr<const Learner> learner = MustMake("perceptron(epochs=1000)");
  double last = -1;
  int calls = 0;
  const absl::Status status =
      learner
          ->Train(examples.set(), 1,
                  [&](double fraction) {
                    EXPECT_GT(fraction, last);
                    EXPECT_LE(fraction, 1);
                    last = fraction;
                    return ++calls == 40 ? absl::CancelledError("enough") : absl::OkStatus();
                  })
          .status();
  EXPECT_EQ(status, absl::CancelledError("enough"));
  EXPECT_EQ(calls, 40);
}

TEST(TrainingSetTest, WhatIsWrongIsNamed) {
  const std::unique_ptr<const Learner> learner = MustMake("perceptron()");
  Matrix<double> rows(3, 2);
  const auto detail = [&](const TrainingSet& examples) {
    return *DetailOf(learner->Train(examples, 1, NeverStop).status());
  };
  const std::vector<int32_t> labels = {0, 1, 1};
  EXPECT_EQ(detail({.rows = rows.view().Rows(0, 0), .labels = {}, .class_count = 2}).reason,
            "ROWS_EMPTY");
  EXPECT_EQ(detail({.rows = rows.view(), .labels = labels, .class_count = 1}).field, "class_count");
  EXPECT_EQ(detail({.rows = rows.view().Rows(0, 2), .labels = labels, .class_count = 2}).field,
            "labels");
  const std::vector<int32_t> wrong = {0, 2, 1};
  EXPECT_EQ(detail({.rows = rows.view(), .labels = wrong, .class_count = 2}).metadata.at("row"),
            "1");
  rows(2, 1) = std::nan("");
  const ErrorDetail error = detail({.rows = rows.view(), .labels = labels, .class_count = 2});
  EXPECT_EQ(error.reason, "VALUE_NOT_FINITE");
  EXPECT_EQ(error.metadata.at("row"), "2");
  EXPECT_EQ(error.metadata.at("column"), "1");
}

TEST(ModelTest, RowsOfAnotherLengthAreRefused) {
  const LabeledRows examples = NoisyRows(50, 5, 2, 8);
  const std::unique_ptr<const Model> model = MustTrain("perceptron()", examples, 1);
  const Matrix<double> other(3, 4);
  const absl::Status status = model->Predict(other.view(), NeverStop).status();
  EXPECT_EQ(DetailOf(status)->reason, "COLUMNS_MISMATCH");
  EXPECT_EQ(DetailOf(status)->metadata.at("expected"), "5");
}

// Class 2 has no rows, so no row is predicted to be of class 2.
TEST(ModelTest, AClassWithoutRowsIsNeverPredictedOnTheRowsItLearned) {
  LabeledRows examples = NoisyRows(300, 5, 2, 8);
  examples.classes = 3;
  const std::unique_ptr<const Model> model =
      MustTrain("perceptron(epochs=50, average=true)", examples, 1);
  const std::vector<int32_t> classes = *model->Predict(examples.rows.view(), NeverStop);
  EXPECT_THAT(classes, ::testing::Not(::testing::Contains(2)));
}

}  // namespace
}  // namespace phimap
