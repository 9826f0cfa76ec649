// The perceptron against its defining recurrence.
#include "core/learn/perceptron.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/learn/make_learner.h"
#include "core/learn/row_order.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::NormalRows;

struct Labeled {
  Matrix<double> rows;
  std::vector<int32_t> labels;
};

// Rows whose class is the largest of L fixed random scores, a tenth of them relabeled.
Labeled NoisyRows(int64_t n, int64_t columns, int32_t classes, uint64_t seed) {
  Labeled made{.rows = NormalRows({.rows = n, .cols = columns, .seed = seed}), .labels = {}};
  const Matrix<double> w = NormalRows({.rows = classes, .cols = columns, .seed = seed + 1});
  for (int64_t i = 0; i < n; ++i) {
    int32_t best = 0;
    double highest = -1e300;
    for (int32_t y = 0; y < classes; ++y) {
      double score = 0;
      for (int64_t k = 0; k < columns; ++k) score += w(y, k) * made.rows(i, k);
      if (score > highest) {
        highest = score;
        best = y;
      }
    }
    made.labels.push_back(i % 10 == 0 ? static_cast<int32_t>(i / 10 % classes) : best);
  }
  return made;
}

std::unique_ptr<const Model> Train(const char* spec, const Labeled& examples, int32_t classes,
                                   uint64_t seed) {
  absl::StatusOr<std::unique_ptr<const Learner>> learner = MakeLearner(*LearnerSpec::Parse(spec));
  EXPECT_TRUE(learner.ok()) << learner.status();
  absl::StatusOr<std::unique_ptr<const Model>> model = (*learner)->Train(
      {.rows = examples.rows.view(), .labels = examples.labels, .class_count = classes}, seed,
      NeverStop);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Rosenblatt's rule for labels ±1 on (x, 1), word for word.
TEST(PerceptronTest, TwoClassesAreRosenblattsRule) {
  const Labeled examples = NoisyRows(300, 7, 2, 3);
  const std::unique_ptr<const Model> model = Train("perceptron(epochs=4)", examples, 2, 9);
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
  // Sums of some 500 rows, in the same order; half a difference of two classes is exact.
  for (int k = 0; k < 7; ++k) {
    EXPECT_NEAR((weights.weights(1, k) - weights.weights(0, k)) / 2, w[k], 1e-9);
  }
  EXPECT_EQ((weights.intercepts[1] - weights.intercepts[0]) / 2, w[7]);
}

// Kesler's construction, and the mean as the definition has it: the sum of the weights after every
// row.
TEST(PerceptronTest, ManyClassesAndTheMeanAreTheirDefinitions) {
  constexpr int kClasses = 4;
  const Labeled examples = NoisyRows(200, 5, kClasses, 4);
  for (const bool average : {false, true}) {
    const std::unique_ptr<const Model> model =
        Train(average ? "perceptron(epochs=3, average=true, bias=0.5)"
                      : "perceptron(epochs=3, average=false, bias=0.5)",
              examples, kClasses, 1);
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

// Novikoff: at most (R/γ)² changes; so rows of length 1 with margin 0.2 need no more than 25, and a
// pass without one ends it.
TEST(PerceptronTest, SeparableRowsEndWithinTheBoundOfNovikoff) {
  Matrix<double> rows = NormalRows({.rows = 500, .cols = 10, .seed = 6});
  Labeled examples{.rows = Matrix<double>(500, 10), .labels = {}};
  for (int i = 0; i < 500; ++i) {
    rows(i, 0) = 0;
    double norm = 0;
    for (int k = 0; k < 10; ++k) norm += rows(i, k) * rows(i, k);
    for (int k = 0; k < 10; ++k) examples.rows(i, k) = rows(i, k) * std::sqrt(0.96 / norm);
    examples.rows(i, 0) = i % 2 == 0 ? 0.2 : -0.2;
    examples.labels.push_back(i % 2 == 0 ? 1 : 0);
  }
  const std::unique_ptr<const Model> model =
      Train("perceptron(epochs=1000, bias=0)", examples, 2, 2);
  // Every pass but the last has a change.
  EXPECT_THAT(model->Summary(), ::testing::StartsWith("0 changes in the last of "));
  int passes = 0;
  ASSERT_EQ(std::sscanf(model->Summary().c_str(), "0 changes in the last of %d passes", &passes),
            1);
  EXPECT_LE(passes, 26);
  EXPECT_EQ(*model->Predict(examples.rows.view(), NeverStop), examples.labels);
}

TEST(PerceptronTest, SameSeedSameBitsAndAnotherSeedAnotherOrder) {
  const Labeled examples = NoisyRows(200, 5, 3, 8);
  const auto weights = [&](uint64_t seed) {
    const std::unique_ptr<const Model> model = Train("perceptron()", examples, 3, seed);
    const Matrix<double>& w = model->linear()->weights;
    return std::vector<double>(w.data(), w.data() + w.size());
  };
  EXPECT_EQ(weights(5), weights(5));
  EXPECT_NE(weights(5), weights(6));
}

TEST(PerceptronTest, TrainingStopsWhereTheCheckpointSays) {
  const Labeled examples = NoisyRows(1000, 5, 2, 8);
  const Perceptron learner({.epochs = 1000});
  double last = -1;
  int calls = 0;
  const absl::Status status =
      learner
          .Train({.rows = examples.rows.view(), .labels = examples.labels, .class_count = 2}, 1,
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
  const Perceptron learner({});
  Matrix<double> rows(3, 2);
  const auto detail = [&](const TrainingSet& examples) {
    return *DetailOf(learner.Train(examples, 1, NeverStop).status());
  };
  const std::vector<int32_t> labels = {0, 1, 1};
  EXPECT_EQ(detail({.rows = rows.view().Rows(0, 0), .labels = {}, .class_count = 2}).reason,
            "EMPTY");
  EXPECT_EQ(detail({.rows = rows.view(), .labels = labels, .class_count = 1}).field, "class_count");
  EXPECT_EQ(detail({.rows = rows.view().Rows(0, 2), .labels = labels, .class_count = 2}).field,
            "labels");
  const std::vector<int32_t> wrong = {0, 2, 1};
  EXPECT_EQ(detail({.rows = rows.view(), .labels = wrong, .class_count = 2}).metadata.at("row"),
            "1");
  rows(2, 1) = std::nan("");
  const ErrorDetail error = detail({.rows = rows.view(), .labels = labels, .class_count = 2});
  EXPECT_EQ(error.reason, "NOT_FINITE");
  EXPECT_EQ(error.metadata.at("row"), "2");
  EXPECT_EQ(error.metadata.at("column"), "1");
}

TEST(ModelTest, RowsOfAnotherLengthAreRefused) {
  const Labeled examples = NoisyRows(50, 5, 2, 8);
  const std::unique_ptr<const Model> model = Train("perceptron()", examples, 2, 1);
  const Matrix<double> other(3, 4);
  const absl::Status status = model->Predict(other.view(), NeverStop).status();
  EXPECT_EQ(DetailOf(status)->reason, "WRONG_COLUMNS");
  EXPECT_EQ(DetailOf(status)->metadata.at("expected"), "5");
}

// Class 2 has no row: nothing is predicted to be one.
TEST(ModelTest, AClassWithoutRowsIsNeverPredictedOnTheRowsItLearned) {
  const Labeled examples = NoisyRows(300, 5, 2, 8);
  const std::unique_ptr<const Model> model =
      Train("perceptron(epochs=50, average=true)", examples, 3, 1);
  const std::vector<int32_t> classes = *model->Predict(examples.rows.view(), NeverStop);
  EXPECT_THAT(classes, ::testing::Not(::testing::Contains(2)));
}

}  // namespace
}  // namespace phimap
