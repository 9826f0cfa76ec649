// Compares balanced Winnow with its defining recurrence.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/learn/row_order.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

struct Expected {
  // Weights of (x/scale, 1). The last weight does not include the threshold, which is subtracted
  // from it.
  std::vector<double> w;
  std::vector<double> scales;
};

// Runs the definition of Winnow for one class. Each feature has two positive weights, which are
// multiplied by a factor when a row is classified wrongly.
Expected NaiveWinnow(const LabeledRows& rows, int32_t positive, double rate, double threshold,
                     int epochs, uint64_t seed) {
  const int64_t n = rows.rows.rows();
  const int64_t p = rows.rows.cols();
  Expected expected{.w = {}, .scales = std::vector<double>(static_cast<size_t>(p))};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < p; ++k) {
      expected.scales[k] = std::max(expected.scales[k], std::abs(rows.rows(i, k)));
    }
  }
  for (double& scale : expected.scales) scale = scale > 0 ? scale : 1;
  std::vector<double> plus(static_cast<size_t>(p) + 1, 1);
  std::vector<double> minus(plus);
  RowOrder order(n, seed);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const int64_t i : order.Next()) {
      const auto x = [&](int64_t k) { return k == p ? 1 : rows.rows(i, k) / expected.scales[k]; };
      const double y = rows.labels[i] == positive ? 1 : -1;
      double sum = -threshold;
      for (int64_t k = 0; k <= p; ++k) sum += (plus[k] - minus[k]) * x(k);
      if (y * sum > 0) continue;
      for (int64_t k = 0; k <= p; ++k) {
        plus[k] *= std::exp(rate * y * x(k));
        minus[k] *= std::exp(-rate * y * x(k));
      }
    }
  }
  for (int64_t k = 0; k <= p; ++k) expected.w.push_back(plus[k] - minus[k]);
  return expected;
}

TEST(WinnowTest, TwoClassesOnRealDataAreTheRecurrence) {
  for (const char* name : {"cancer.csv", "ionosphere.csv"}) {
    const LabeledRows rows = RealData(name);
    const std::unique_ptr<const Model> model =
        MustTrain("winnow(rate=0.2, threshold=0.5, epochs=3)", rows, 7);
    const Expected expected = NaiveWinnow(rows, 1, 0.2, 0.5, 3, 7);
    const LinearWeights& weights = *model->linear();
    // Weights are products of at most 3·683 factors, each with two roundings. Round-off could also
    // change whether a row is classified wrongly, but this is too rare to matter.
    for (int64_t k = 0; k < rows.rows.cols(); ++k) {
      const double w = expected.w[k] / expected.scales[k];
      EXPECT_NEAR(weights.weights(1, k), w, 1e-9 * (1 + std::abs(w))) << name << " " << k;
      EXPECT_EQ(weights.weights(0, k), -weights.weights(1, k));
    }
    EXPECT_NEAR(weights.intercepts[1], expected.w.back() - 0.5, 1e-9);
    EXPECT_LT(ErrorOn(*model, rows), 0.2) << name;
  }
}

TEST(WinnowTest, ManyClassesAreEachAgainstTheRestInOneOrder) {
  const LabeledRows rows = NoisyRows(150, 4, 3, 5);
  const std::unique_ptr<const Model> model = MustTrain("winnow(rate=0.5, epochs=2)", rows, 3);
  for (int32_t y = 0; y < 3; ++y) {
    const Expected expected = NaiveWinnow(rows, y, 0.5, 0, 2, 3);
    for (int64_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(model->linear()->weights(y, k), expected.w[k] / expected.scales[k], 1e-9);
    }
    EXPECT_NEAR(model->linear()->intercepts[y], expected.w[4], 1e-9);
  }
}

// Winnow scales its columns, so multiplying one by a power of two leaves the predictions the same.
TEST(WinnowTest, TheScaleOfAColumnMeansNothing) {
  LabeledRows rows = NoisyRows(200, 5, 2, 6);
  const std::vector<int32_t> before =
      *MustTrain("winnow()", rows, 1)->Predict(rows.rows.view(), NeverStop);
  for (int64_t i = 0; i < 200; ++i) rows.rows(i, 3) *= 1024;
  EXPECT_EQ(*MustTrain("winnow()", rows, 1)->Predict(rows.rows.view(), NeverStop), before);
}

// Winnow is strong where few of many features are relevant.
TEST(WinnowTest, FindsAFewRelevantFeaturesAmongMany) {
  LabeledRows rows = NoisyRows(600, 300, 2, 8);
  for (int64_t i = 0; i < 600; ++i) {
    for (int64_t k = 0; k < 300; ++k) rows.rows(i, k) = rows.rows(i, k) > 0 ? 1 : -1;
    rows.labels[i] = rows.rows(i, 10) + rows.rows(i, 20) + rows.rows(i, 30) > 0 ? 1 : 0;
  }
  const LabeledRows train = Every(rows, 0, 2);
  const LabeledRows test = Every(rows, 1, 2);
  const std::unique_ptr<const Model> model = MustTrain("winnow(epochs=100, bias=0)", train, 1);
  EXPECT_THAT(model->Summary(), StartsWith("0 mistakes in the last of "));
  EXPECT_EQ(ErrorOn(*model, train), 0);
  // An additive rule such as the perceptron's needs about as many rows as there are columns. Here
  // it gets 300 rows with 300 columns.
  EXPECT_LT(ErrorOn(*model, test),
            0.5 * ErrorOn(*MustTrain("perceptron(epochs=100, bias=0)", train, 1), test));
}

// Labels contradict each other, so mistakes never end, but weights stay finite.
TEST(WinnowTest, WeightsStayFiniteWhateverTheLabels) {
  LabeledRows rows{.rows = Matrix<double>(3, 1), .labels = {0, 1, 1}, .classes = 2};
  for (int i = 0; i < 3; ++i) rows.rows(i, 0) = 1;
  rows.rows(0, 0) = -0.001;
  const std::unique_ptr<const Model> model =
      MustTrain("winnow(rate=1000, threshold=1000000, epochs=50, bias=0)", rows, 1);
  EXPECT_TRUE(std::isfinite(model->linear()->weights(1, 0)));
  EXPECT_EQ(model->linear()->bias, 1);
  EXPECT_EQ(model->linear()->intercepts[1], -1e6);
}

}  // namespace
}  // namespace phimap::testing
