#include "core/certificate/fidelity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/linalg/blas.h"
#include "gtest/gtest.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

using Table = std::vector<std::vector<long double>>;

// H·M·H by its definition.
Table NaiveCentred(const Matrix<double>& m) {
  const int64_t n = m.rows();
  const auto h = [&](int64_t i, int64_t j) { return (i == j ? 1.0L : 0.0L) - 1.0L / n; };
  Table half(n, std::vector<long double>(n)), out = half;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < n; ++k) half[i][j] += h(i, k) * m(k, j);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < n; ++k) out[i][j] += half[i][k] * h(k, j);
    }
  }
  return out;
}

// M·(M + ridge·I)⁻¹, by elimination with pivots: solves (M + ridge·I)·S = M, where the factors
// commute.
Table NaiveSmoother(const Table& m, long double ridge) {
  const size_t n = m.size();
  Table a = m, b = m;
  for (size_t i = 0; i < n; ++i) a[i][i] += ridge;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i) {
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    }
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const long double factor = a[i][k] / a[k][k];
      for (size_t j = 0; j < n; ++j) {
        a[i][j] -= factor * a[k][j];
        b[i][j] -= factor * b[k][j];
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) b[i][j] /= a[i][i];
  }
  return b;
}

double NaiveDistance(const Matrix<double>& kernel, const Matrix<double>& features, double lambda) {
  const Table a = NaiveCentred(kernel), b = NaiveCentred(features);
  long double mean = 0;
  for (size_t i = 0; i < a.size(); ++i) mean += a[i][i] / static_cast<long double>(a.size());
  const Table of_a = NaiveSmoother(a, lambda * mean), of_b = NaiveSmoother(b, lambda * mean);
  long double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) {
      difference += (of_a[i][j] - of_b[i][j]) * (of_a[i][j] - of_b[i][j]);
      norm += of_a[i][j] * of_a[i][j];
    }
  }
  return static_cast<double>(std::sqrt(difference / norm));
}

Matrix<double> GramOf(const Matrix<double>& rows) {
  Matrix<double> gram = Matrix<double>::Uninit(rows.rows(), rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.rows(); ++j) {
      double dot = 0;
      for (int64_t k = 0; k < rows.cols(); ++k) dot += rows(i, k) * rows(j, k);
      gram(i, j) = dot;
    }
  }
  return gram;
}

Matrix<double> FirstColumns(const Matrix<double>& rows, int64_t count) {
  Matrix<double> out = Matrix<double>::Uninit(rows.rows(), count);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < count; ++j) out(i, j) = rows(i, j);
  }
  return out;
}

Matrix<double> Plus(Matrix<double> m, double number) {
  for (int64_t i = 0; i < m.size(); ++i) m.data()[i] += number;
  return m;
}

const Matrix<double> kRows = NormalRows({.rows = 25, .cols = 8, .seed = 3});

Fidelity MustCompare(const Matrix<double>& kernel, const Matrix<double>& features) {
  return CompareGrams(kernel.Clone(), features.Clone(), NeverStop).value();
}

TEST(FidelityTest, EveryNumberIsItsDefinition) {
  UseOneBlasThread();
  const Matrix<double> kernel = GramOf(kRows), features = GramOf(FirstColumns(kRows, 6));
  const Fidelity fidelity = MustCompare(kernel, features);
  EXPECT_EQ(fidelity.rows, 25);
  ASSERT_EQ(fidelity.smoothers.size(), std::size(kFidelityLambdas));
  for (const SmootherDistance& smoother : fidelity.smoothers) {
    // The condition of A + λτI is at most 25/λ, so twelve digits are certain.
    EXPECT_NEAR(smoother.distance, NaiveDistance(kernel, features, smoother.lambda), 1e-12);
    EXPECT_GT(smoother.distance, 0.1);
  }
  double difference = 0, norm = 0;
  const Table a = NaiveCentred(kernel), b = NaiveCentred(features);
  double centred_difference = 0, centred_norm = 0;
  std::vector<double> shares, distances;
  for (int64_t i = 0; i < 25; ++i) {
    shares.push_back(std::abs(kernel(i, i) - features(i, i)) / kernel(i, i));
    for (int64_t j = 0; j < 25; ++j) {
      if (i == j) continue;
      difference += std::pow(kernel(i, j) - features(i, j), 2);
      norm += std::pow(kernel(i, j), 2);
      centred_difference += static_cast<double>(std::pow(a[i][j] - b[i][j], 2));
      centred_norm += static_cast<double>(std::pow(a[i][j], 2));
      double squared = 0, mapped = 0;
      for (int64_t k = 0; k < 8; ++k) {
        const double apart = kRows(i, k) - kRows(j, k);
        squared += apart * apart;
        if (k < 6) mapped += apart * apart;
      }
      if (j < i) distances.push_back(std::abs(mapped / squared - 1));
    }
  }
  EXPECT_NEAR(fidelity.gram_error, std::sqrt(difference / norm), 1e-14);
  EXPECT_NEAR(fidelity.centred_gram_error, std::sqrt(centred_difference / centred_norm), 1e-13);
  std::sort(shares.begin(), shares.end());
  EXPECT_NEAR(fidelity.self_error_median, shares[12], 1e-14);
  EXPECT_NEAR(fidelity.self_error_quantile_95, shares[23], 1e-14);  // the 24th of 25
  std::sort(distances.begin(), distances.end());
  EXPECT_NEAR(fidelity.distance_error_quantile_95, distances[284], 1e-12);  // the 285th of 300
}

// What ridge regression with an intercept, trained on all rows but `left`, predicts for that row as
// a multiple of each row's label.
std::vector<long double> NaivePrediction(const Matrix<double>& gram, int64_t left,
                                         long double ridge) {
  const int64_t n = gram.rows();
  std::vector<int64_t> others;
  for (int64_t i = 0; i < n; ++i) {
    if (i != left) others.push_back(i);
  }
  Matrix<double> of_others = Matrix<double>::Uninit(n - 1, n - 1);
  for (int64_t i = 0; i < n - 1; ++i) {
    for (int64_t j = 0; j < n - 1; ++j) of_others(i, j) = gram(others[i], others[j]);
  }
  // The coefficients of the row's centred kernel values are (A + ridge·I)⁻¹·H·labels. With S = A·(A
  // + ridge·I)⁻¹ the inverse is (I − S)/ridge.
  const Table smoother = NaiveSmoother(NaiveCentred(of_others), ridge);
  const auto count = static_cast<long double>(n - 1);
  std::vector<long double> means(others.size());
  long double mean = 0, mean_of_row = 0;
  for (int64_t i = 0; i < n - 1; ++i) {
    for (int64_t j = 0; j < n - 1; ++j) means[i] += of_others(i, j) / count;
    mean += means[i] / count;
    mean_of_row += gram(left, others[i]) / count;
  }
  std::vector<long double> prediction(static_cast<size_t>(n));
  for (int64_t j = 0; j < n - 1; ++j) {
    long double sum = 1 / count;
    for (int64_t i = 0; i < n - 1; ++i) {
      const long double centred = gram(left, others[i]) - means[i] - mean_of_row + mean;
      sum += centred * ((i == j ? 1 : 0) - smoother[i][j]) / ridge;
    }
    prediction[others[j]] = sum;
  }
  return prediction;
}

TEST(FidelityTest, TheDistanceOfRowsLeftOutIsThatOfLearnersTrainedWithoutThem) {
  UseOneBlasThread();
  const Matrix<double> kernel = GramOf(kRows), features = GramOf(FirstColumns(kRows, 6));
  const Table a = NaiveCentred(kernel), b = NaiveCentred(features);
  long double ridge = 0;  // λ = 1
  for (size_t i = 0; i < a.size(); ++i) ridge += a[i][i] / 25;
  const Table of_a = NaiveSmoother(a, ridge), of_b = NaiveSmoother(b, ridge);
  long double difference = 0, norm = 0;
  for (int64_t i = 0; i < 25; ++i) {
    const std::vector<long double> on_kernel = NaivePrediction(kernel, i, ridge);
    const std::vector<long double> on_features = NaivePrediction(features, i, ridge);
    // Both predict the mean of labels that are equal; this part says nothing.
    const long double mean_a = 1 / (25 * (1 - of_a[i][i]) - 1);
    const long double mean_b = 1 / (25 * (1 - of_b[i][i]) - 1);
    for (int64_t j = 0; j < 25; ++j) {
      if (i == j) continue;
      const long double from_a = on_kernel[j] - mean_a;
      difference += std::pow(from_a - (on_features[j] - mean_b), 2);
      norm += std::pow(from_a, 2);
    }
  }
  const Fidelity fidelity = MustCompare(kernel, features);
  EXPECT_NEAR(fidelity.left_out_distance, static_cast<double>(std::sqrt(difference / norm)), 1e-12);
  EXPECT_GT(fidelity.left_out_distance, 0.1);
  EXPECT_EQ(MustCompare(kernel, kernel).left_out_distance, 0);
}

// Rows that are far apart for a narrow kernel: K is nearly I, and features add noise to it. Their
// smoothers are alike, and what they predict for other rows is not.
TEST(FidelityTest, NarrowKernelsDifferOnRowsThatAreLeftOut) {
  const Matrix<double> noise = NormalRows({.rows = 60, .cols = 60, .seed = 4});
  Matrix<double> kernel(60, 60), features(60, 60);
  for (int64_t i = 0; i < 60; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      kernel(i, j) = kernel(j, i) = i == j ? 1 : 1e-3;
      features(i, j) = features(j, i) = i == j ? 1 : 0.06 * noise(i, j);
    }
  }
  const Fidelity fidelity = MustCompare(kernel, features);
  EXPECT_LT(fidelity.tuned_distance(), 0.02);
  EXPECT_GT(fidelity.left_out_distance, 1);
}

// Kernel values of 10¹² have rounding errors of 10⁻⁴, which are no reason to call features bad that
// keep what differs.
TEST(FidelityTest, RoundingErrorsOfTheKernelAreNoDistance) {
  const Matrix<double> features = GramOf(kRows);
  const Fidelity fidelity = MustCompare(Plus(features.Clone(), 1e12), features);
  for (const SmootherDistance& smoother : fidelity.smoothers) {
    EXPECT_LT(smoother.distance, 0.01) << smoother.lambda;
    EXPECT_GT(smoother.lambda, 1e-2);
  }
  EXPECT_GT(fidelity.tuned_distance(), 0) << "what was measured counts, though at a larger λ";
  // Features that lack what differs are told from it there too.
  const Fidelity poor = MustCompare(Plus(features.Clone(), 1e12), GramOf(FirstColumns(kRows, 3)));
  EXPECT_GT(poor.tuned_distance(), 0.3);
}

// λ and λτ/τ are not always the same number, and a tuned learner's λ must not be lost to that.
TEST(FidelityTest, EveryLambdaUpToTheServingOneCounts) {
  for (int i = 1; i <= 50; ++i) {
    Matrix<double> kernel = GramOf(kRows), features = GramOf(FirstColumns(kRows, 6));
    for (Matrix<double>* m : {&kernel, &features}) {
      for (int64_t k = 0; k < m->size(); ++k) m->data()[k] *= 0.1 * i;
    }
    const Fidelity fidelity = MustCompare(kernel, features);
    ASSERT_EQ(fidelity.serving_lambda(), kServingLambda) << i;
    ASSERT_EQ(fidelity.tuned_distance(),
              std::max(fidelity.smoothers[1].distance, fidelity.smoothers[2].distance))
        << i;
  }
}

TEST(FidelityTest, EqualGramMatricesHaveNoDistanceAndConstantFeaturesHaveAllOfIt) {
  const Matrix<double> kernel = GramOf(kRows);
  const Fidelity same = MustCompare(kernel, kernel);
  Matrix<double> zero(25, 25);
  for (const Matrix<double>& constant : {zero.Clone(), Plus(zero.Clone(), 1)}) {
    const Fidelity none = MustCompare(kernel, constant);
    for (size_t i = 0; i < none.smoothers.size(); ++i) {
      EXPECT_EQ(same.smoothers[i].distance, 0);
      EXPECT_NEAR(none.smoothers[i].distance, 1, 1e-12);
    }
    EXPECT_NEAR(none.centred_gram_error, 1, 1e-12);
  }
  EXPECT_EQ(MustCompare(kernel, zero).gram_error, 1);
}

// A kernel that is a large constant plus a kernel: a mean of errors relative to K hides all of it,
// and a learner with an intercept sees only the rest.
TEST(FidelityTest, AConstantThatAnInterceptAbsorbsHidesNothing) {
  const Matrix<double> kernel = GramOf(kRows), features = GramOf(FirstColumns(kRows, 3));
  const Fidelity plain = MustCompare(kernel, features);
  const Fidelity raised = MustCompare(Plus(kernel.Clone(), 1e6), Plus(features.Clone(), 1e6));
  EXPECT_LT(raised.gram_error, 1e-4);
  for (size_t i = 0; i < plain.smoothers.size(); ++i) {
    // Entries of 1e6 have rounding errors of 1e-10, which λ = 10⁻⁴ magnifies 10⁴-fold.
    EXPECT_NEAR(raised.smoothers[i].distance, plain.smoothers[i].distance, 1e-5);
    EXPECT_GT(plain.smoothers[i].distance, 0.3);
  }
}

TEST(FidelityTest, NothingIsLearnedFromAKernelThatIsConstantUpToRounding) {
  const Matrix<double> kernel = GramOf(kRows);
  Matrix<double> constant = Plus(kernel.Clone(), 0);
  for (int64_t i = 0; i < constant.size(); ++i) constant.data()[i] = 1 + 1e-17 * kernel.data()[i];
  EXPECT_TRUE(MustCompare(constant, constant).smoothers.empty());
  // Ten thousand units of round-off are a kernel again.
  for (int64_t i = 0; i < constant.size(); ++i) constant.data()[i] = 1 + 1e-12 * kernel.data()[i];
  EXPECT_EQ(MustCompare(constant, constant).smoothers.size(), std::size(kFidelityLambdas));
}

// Features of a huge length, as unbounded random features have, must not pass for the kernel.
TEST(FidelityTest, HugeFeaturesAreFarFromTheKernel) {
  const Matrix<double> kernel = GramOf(kRows);
  Matrix<double> huge = kernel.Clone();
  for (int64_t i = 0; i < huge.size(); ++i) huge.data()[i] *= 1e40;
  const Fidelity fidelity = MustCompare(kernel, huge);
  EXPECT_GT(fidelity.smoothers[0].distance, 0.5);
  EXPECT_GT(fidelity.gram_error, 1e39);
}

TEST(FidelityTest, DoesNotDependOnTheNumberOfThreadsAndStopsWhenAsked) {
  const Matrix<double> kernel = GramOf(kRows), features = GramOf(FirstColumns(kRows, 6));
  const Fidelity one = MustCompare(kernel, features);
  const auto three = [] { return 3; };
  const Fidelity several =
      CompareGrams(kernel.Clone(), features.Clone(), {three, NeverStop}).value();
  ASSERT_EQ(several.smoothers.size(), one.smoothers.size());
  for (size_t i = 0; i < one.smoothers.size(); ++i) {
    EXPECT_EQ(several.smoothers[i].distance, one.smoothers[i].distance);
  }
  const auto stop = [](double) { return absl::CancelledError("stopped"); };
  EXPECT_TRUE(
      absl::IsCancelled(CompareGrams(kernel.Clone(), features.Clone(), {three, stop}).status()));
  EXPECT_TRUE(absl::IsCancelled(
      DistancesBetween(kernel.Clone(), features.Clone(), {1e-2}, {three, stop}).status()));
}

TEST(FidelityTest, SmootherOfAnIndefiniteMatrixCountsNegativeEigenvaluesAsZero) {
  UseOneBlasThread();
  Matrix<double> m(2, 2);
  m(0, 0) = 3;
  m(1, 1) = -5;
  const Matrix<double> smoother = SmootherOf(m.view(), 1).value();
  EXPECT_NEAR(smoother(0, 0), 0.75, 1e-15);
  EXPECT_NEAR(smoother(1, 1), 0, 1e-15);
  EXPECT_NEAR(smoother(0, 1), 0, 1e-15);
}

}  // namespace
}  // namespace phimap::testing
