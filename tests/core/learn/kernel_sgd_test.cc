// Tests kernel SGD: it follows its recurrence in φ-space, and all strategies of computing it give
// the same model.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_expression.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"

namespace phimap::testing {
namespace {

// φ of the kernel (xᵀy + 1)²: all products of two entries of (x, 1).
class DegreeTwo final : public RowMap {
 public:
  explicit DegreeTwo(int64_t columns) : columns_(columns) {}
  int64_t input_columns() const override { return columns_; }
  int64_t output_columns() const override { return (columns_ + 1) * (columns_ + 1); }
  absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const override {
    for (int64_t i = 0; i < rows.rows(); ++i) {
      double* next = out.row(i);
      for (int64_t a = 0; a <= columns_; ++a) {
        for (int64_t b = 0; b <= columns_; ++b) {
          *next++ = (a < columns_ ? rows(i, a) : 1) * (b < columns_ ? rows(i, b) : 1);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t columns_;
};

// Maps rows to the features of a version by the engine.
class VersionMap final : public RowMap {
 public:
  VersionMap(BuiltVersion version, int64_t columns)
      : version_(std::move(version)), columns_(columns) {}
  int64_t input_columns() const override { return columns_; }
  int64_t output_columns() const override { return version_.output_columns; }
  absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const override {
    Matrix<double> copy(rows.rows(), rows.cols());
    for (int64_t i = 0; i < rows.rows(); ++i) std::copy_n(rows.row(i), rows.cols(), copy.row(i));
    const Matrix<double> features = FeaturesFrom(version_, copy);
    for (int64_t i = 0; i < rows.rows(); ++i) {
      std::copy_n(features.row(i), features.cols(), out.row(i));
    }
    return absl::OkStatus();
  }

 private:
  BuiltVersion version_;
  int64_t columns_;
};

constexpr char kDegreeTwo[] = "poly(degree=2, gamma=1, coef0=1)";

KernelInput Input(const std::string& kernel, std::shared_ptr<const RowMap> map) {
  return {.kernel = *KernelExpression::Parse(kernel), .map = std::move(map)};
}

// Updates w exactly as the lecture writes it, for class `positive` against the rest.
std::vector<double> NaiveSgd(const LabeledRows& rows, const RowMap& map, int32_t positive,
                             double rate, int64_t epochs, uint64_t seed) {
  const int64_t n = rows.rows.rows();
  Matrix<double> phi(n, map.output_columns());
  EXPECT_TRUE(map.Map(rows.rows.view(), phi.view()).ok());
  std::vector<double> w(static_cast<size_t>(phi.cols()));
  const RandomStream stream(seed, StreamId::kSgdRows);
  for (int64_t t = 0; t < epochs * n; ++t) {
    const auto i = static_cast<int64_t>(stream.UniformBelow(static_cast<uint64_t>(t), n));
    double wx = 0;
    for (int64_t k = 0; k < phi.cols(); ++k) wx += w[k] * phi(i, k);
    const double y = rows.labels[i] == positive ? 1 : -1;
    const double derivative = -y / (1 + std::exp(wx * y));
    for (int64_t k = 0; k < phi.cols(); ++k) w[k] -= rate * derivative * phi(i, k);
  }
  std::vector<double> scores;
  for (int64_t i = 0; i < n; ++i) {
    double wx = 0;
    for (int64_t k = 0; k < phi.cols(); ++k) wx += w[k] * phi(i, k);
    scores.push_back(wx);
  }
  return scores;
}

// Returns the share of rows that the scores classify wrongly. With two classes there are only
// scores of class 1, and a row is wrong if its score has the wrong sign. With more classes, a row
// is wrong if another class has a larger score than its own.
double ErrorOfScores(const std::vector<std::vector<double>>& scores, const LabeledRows& rows) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < rows.rows.rows(); ++i) {
    int32_t best = scores.size() == 1 && scores[0][i] > 0 ? 1 : 0;
    for (size_t y = 1; y < scores.size(); ++y) {
      if (scores[y][i] > scores[best][i]) best = static_cast<int32_t>(y);
    }
    wrong += best != rows.labels[i] ? 1 : 0;
  }
  return static_cast<double>(wrong) / static_cast<double>(rows.rows.rows());
}

// The second derivative of the logistic loss is at most 1/4, and rate·‖φ‖² is under 8, so no step
// amplifies earlier errors. After T steps the round-off is about 1e-16·‖φ‖²·T, or 1e-10.
TEST(KernelSgdTest, TheFourStrategiesAreTheRecurrenceAndEndInTheSameModel) {
  const LabeledRows real = RealData("cancer.csv");
  const LabeledRows made = NoisyRows(120, 3, 3, 2);
  for (const LabeledRows* rows : {&real, &made}) {
    const KernelInput input = Input(kDegreeTwo, std::make_shared<DegreeTwo>(rows->rows.cols()));
    std::vector<std::vector<double>> expected;
    for (int32_t y = rows->classes == 2 ? 1 : 0; y < rows->classes; ++y) {
      expected.push_back(NaiveSgd(*rows, *input.map, y, 0.002, 3, 5));
    }
    for (const char* strategy : {"features", "stored_features", "kernel", "gram"}) {
      SCOPED_TRACE(strategy);
      const std::unique_ptr<const Model> model =
          MustTrain(absl::StrCat("kernel_sgd(strategy=", strategy, ", rate=0.002, epochs=3)"),
                    *rows, 5, input);
      const Matrix<double> scores = MustScore(*model, rows->rows);
      for (int64_t i = 0; i < rows->rows.rows(); ++i) {
        for (size_t s = 0; s < expected.size(); ++s) {
          const int64_t y = rows->classes == 2 ? 1 : static_cast<int64_t>(s);
          EXPECT_NEAR(scores(i, y), expected[s][i], 1e-8 * (1 + std::abs(expected[s][i])));
        }
        if (rows->classes == 2) {
          EXPECT_EQ(scores(i, 0), -scores(i, 1));
        }
      }
      EXPECT_EQ(ErrorOn(*model, *rows), ErrorOfScores(expected, *rows));
    }
  }
}

// Updates u exactly as the lecture writes it, for class `positive` against the rest and the kernel
// exp(−γ‖x − y‖²).
std::vector<double> NaiveKernelSgd(const LabeledRows& rows, double gamma, int32_t positive,
                                   double rate, int64_t epochs, uint64_t seed) {
  const int64_t n = rows.rows.rows();
  Matrix<double> k(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double square = 0;
      for (int64_t c = 0; c < rows.rows.cols(); ++c) {
        square += (rows.rows(i, c) - rows.rows(j, c)) * (rows.rows(i, c) - rows.rows(j, c));
      }
      k(i, j) = std::exp(-gamma * square);
    }
  }
  std::vector<double> u(static_cast<size_t>(n));
  const auto score = [&](int64_t i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += u[j] * k(i, j);
    return sum;
  };
  const RandomStream stream(seed, StreamId::kSgdRows);
  for (int64_t t = 0; t < epochs * n; ++t) {
    const auto i = static_cast<int64_t>(stream.UniformBelow(static_cast<uint64_t>(t), n));
    const double y = rows.labels[i] == positive ? 1 : -1;
    u[i] += rate * y / (1 + std::exp(y * score(i)));
  }
  std::vector<double> scores;
  for (int64_t i = 0; i < n; ++i) scores.push_back(score(i));
  return scores;
}

// An rbf kernel has no finite feature vectors, and the lecture uses it without any. The second part
// of the test shows that the model learns from the labels. If the labels are moved to other rows,
// the training error is larger.
TEST(KernelSgdTest, WithoutFiniteFeaturesTheTwoKernelStrategiesAgree) {
  const LabeledRows rows = Every(RealData("letter.csv"), 0, 40);
  const KernelInput input = Input("rbf(gamma=0.0625)", nullptr);
  const std::unique_ptr<const Model> gram = MustTrain("kernel_sgd(epochs=5)", rows, 3, input);
  const std::unique_ptr<const Model> kernel =
      MustTrain("kernel_sgd(strategy=kernel, epochs=5)", rows, 3, input);
  const Matrix<double> a = MustScore(*gram, rows.rows);
  const Matrix<double> b = MustScore(*kernel, rows.rows);
  EXPECT_LE(LargestDifference(a, b), 1e-9);
  for (int32_t y = 0; y < rows.classes; ++y) {
    const std::vector<double> expected = NaiveKernelSgd(rows, 0.0625, y, 0.1, 5, 3);
    for (int64_t i = 0; i < a.rows(); ++i) EXPECT_NEAR(a(i, y), expected[i], 1e-9);
  }
  LabeledRows shuffled = Every(RealData("letter.csv"), 0, 40);
  std::rotate(shuffled.labels.begin(), shuffled.labels.begin() + 7, shuffled.labels.end());
  // With 26 classes, the error is 0.38, and 0.76 with shifted labels.
  const auto learns = [&](const LabeledRows& examples) {
    return ErrorOn(*MustTrain("kernel_sgd(epochs=5)", examples, 3, input), examples) < 0.45;
  };
  EXPECT_TRUE(learns(rows));
  EXPECT_FALSE(learns(shuffled));
}

// A map that counts the rows whose φ it computes.
class CountingMap final : public RowMap {
 public:
  explicit CountingMap(int64_t columns) : map_(columns) {}
  int64_t input_columns() const override { return map_.input_columns(); }
  int64_t output_columns() const override { return map_.output_columns(); }
  absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const override {
    count_ += rows.rows();
    return map_.Map(rows, out);
  }
  int64_t count() const { return count_; }

 private:
  const DegreeTwo map_;
  mutable int64_t count_ = 0;
};

// Checks the lecture's table of costs. T is the number of steps, epochs·n for n rows, even if each
// row trains several classes. The strategy `features` computes φ T times. The strategy
// `stored_features` computes φ n times. The strategies `kernel` and `gram` never compute it.
TEST(KernelSgdTest, FeaturesAreComputedAsOftenAsTheTableOfCostsSays) {
  for (const int32_t classes : {2, 3}) {
    const LabeledRows rows = NoisyRows(80, 3, classes, 4);
    const auto count = [&](const std::string& strategy) {
      const auto map = std::make_shared<CountingMap>(3);
      MustTrain("kernel_sgd(strategy=" + strategy + ", rate=0.01, epochs=5)", rows, 1,
                Input(kDegreeTwo, map));
      return map->count();
    };
    EXPECT_EQ(count("features"), 5 * 80);
    EXPECT_EQ(count("stored_features"), 80);
    EXPECT_EQ(count("kernel"), 0);
    EXPECT_EQ(count("gram"), 0);
  }
}

// The lecture's two further strategies use features that approximate the kernel. One computes them
// when they are needed, the other stores them. The engine computes the same bits for a row alone
// and for a row in a batch, so both strategies give exactly the same model. With more features, the
// model comes nearer to the model of the exact kernel.
TEST(KernelSgdTest, ApproximateFeaturesGiveOneModelWhichNearsTheKernels) {
  const LabeledRows rows = Every(RealData("ionosphere.csv"), 0, 3);
  const std::unique_ptr<const Model> exact =
      MustTrain("kernel_sgd(epochs=2)", rows, 3, Input("rbf(gamma=0.03)", nullptr));
  const Matrix<double> truth = MustScore(*exact, rows.rows);
  double before = 1e300;
  for (const char* mapping :
       {"fourier(dimensions=32)", "fourier(dimensions=2048)", "f2(landmarks=100)"}) {
    const KernelInput input =
        Input("rbf(gamma=0.03)",
              std::make_shared<VersionMap>(MustBuild(SpecOf(mapping, "rbf(gamma=0.03)"), rows.rows),
                                           rows.rows.cols()));
    const Matrix<double> a =
        MustScore(*MustTrain("kernel_sgd(strategy=features, epochs=2)", rows, 3, input), rows.rows);
    const Matrix<double> b = MustScore(
        *MustTrain("kernel_sgd(strategy=stored_features, epochs=2)", rows, 3, input), rows.rows);
    double square = 0;
    for (int64_t i = 0; i < a.rows(); ++i) {
      EXPECT_EQ(a(i, 1), b(i, 1)) << mapping << " " << i;
      square += (a(i, 1) - truth(i, 1)) * (a(i, 1) - truth(i, 1)) / static_cast<double>(a.rows());
    }
    EXPECT_LT(square, before) << mapping;
    before = square;
  }
}

TEST(KernelSgdTest, WhatDoesNotFitIsRefusedAndSaysWhatDoes) {
  constexpr int64_t kMaxGramRows = 16384;
  const LabeledRows rows{.rows = Matrix<double>(kMaxGramRows + 1, 1),
                         .labels = std::vector<int32_t>(kMaxGramRows + 1),
                         .classes = 2};
  const absl::Status gram = MustMake("kernel_sgd(strategy=gram)", Input(kDegreeTwo, nullptr))
                                ->Train(rows.set(), 1, NeverStop)
                                .status();
  EXPECT_EQ(ReasonOf(gram), "ROWS_TOO_MANY");
  EXPECT_THAT(std::string(gram.message()), HasSubstr("strategy=kernel"));
  // The limit is 2^28 numbers. 16,385 rows with 129² features each exceed it.
  const LabeledRows wide{.rows = Matrix<double>(kMaxGramRows + 1, 128),
                         .labels = std::vector<int32_t>(kMaxGramRows + 1),
                         .classes = 2};
  const absl::Status stored = MustMake("kernel_sgd(strategy=stored_features)",
                                       Input(kDegreeTwo, std::make_shared<DegreeTwo>(128)))
                                  ->Train(wide.set(), 1, NeverStop)
                                  .status();
  EXPECT_EQ(ReasonOf(stored), "ROWS_TOO_MANY");
  EXPECT_THAT(std::string(stored.message()), HasSubstr("strategy=features"));
  const absl::Status columns =
      MustMake("kernel_sgd(strategy=features)", Input(kDegreeTwo, std::make_shared<DegreeTwo>(2)))
          ->Train(rows.set(), 1, NeverStop)
          .status();
  EXPECT_EQ(ReasonOf(columns), "COLUMNS_MISMATCH");
}

}  // namespace
}  // namespace phimap::testing
