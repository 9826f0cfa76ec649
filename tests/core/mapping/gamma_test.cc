#include "core/mapping/sample/gamma.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

std::vector<double> AllDistances(const Matrix<double>& x) {
  std::vector<double> distances;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < x.cols(); ++k) sum += std::pow(x(i, k) - x(j, k), 2);
      distances.push_back(sum);
    }
  }
  std::sort(distances.begin(), distances.end());
  return distances;
}

TEST(GammaTest, ScaleIsOneOverColumnsTimesTheVarianceOfAllEntries) {
  Matrix<double> x = NormalRows({.rows = 500, .cols = 6, .seed = 1});
  for (int64_t i = 0; i < 500; ++i) {
    for (int64_t k = 0; k < 6; ++k) x(i, k) = x(i, k) * (1 + static_cast<double>(k)) + 3.0 * k;
  }
  long double mean = 0;
  long double variance = 0;
  for (int64_t i = 0; i < x.size(); ++i) mean += x.data()[i];
  mean /= x.size();
  for (int64_t i = 0; i < x.size(); ++i) variance += std::pow(x.data()[i] - mean, 2);
  variance /= x.size();
  ColumnMoments moments(6);
  moments.Add(x.view());
  const double gamma = ScaleGamma(moments, false).value();
  EXPECT_NEAR(gamma, static_cast<double>(1 / (6 * variance)), 1e-12 * gamma);
  // Standardised columns have variance 1 each, so gamma is 1/p.
  EXPECT_NEAR(*ScaleGamma(moments, true), 1.0 / 6, 1e-15);
}

TEST(GammaTest, ConstantDataHaveNoScale) {
  ColumnMoments moments(3);
  Matrix<double> x(10, 3);
  std::fill_n(x.data(), 30, 4.0);
  moments.Add(x.view());
  for (const bool standardized : {false, true}) {
    EXPECT_THAT(ScaleGamma(moments, standardized).status(),
                IsError(StatusCode::kFailedPrecondition, "GAMMA_UNDEFINED"));
  }
  EXPECT_EQ(MedianGamma(x.view(), 1).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(MedianGamma(x.view().Rows(0, 1), 1).status().code(), StatusCode::kFailedPrecondition);
}

TEST(GammaTest, MedianIsThatOfAllPairsWhileTheyAreFew) {
  for (const int64_t n : {2, 3, 4, 50, 301}) {
    const Matrix<double> x = NormalRows({.rows = n, .cols = 4, .seed = 2});
    const std::vector<double> distances = AllDistances(x);
    const double gamma = MedianGamma(x.view(), 1).value();
    const double median = 1 / gamma;
    // With an even number of pairs, any value between the two middle ones is a median.
    const size_t count = distances.size();
    EXPECT_GE(median, distances[(count - 1) / 2] * (1 - 1e-14)) << n;
    EXPECT_LE(median, distances[count / 2] * (1 + 1e-14)) << n;
  }
}

// Compares the median of 1,000,000 sampled pairs with the median of all pairs. The rank of the
// sampled median among all pairs has a standard deviation of at most 1/(2·√10⁶) = 5e-4. The pairs
// share rows, which adds about 1/√n of the spread. The tolerance of 1 % is six standard deviations
// of both.
TEST(GammaTest, MedianOfManyPairsIsASampleAtAFixedSeed) {
  const Matrix<double> x = NormalRows({.rows = 2000, .cols = 4, .seed = 3});
  const std::vector<double> distances = AllDistances(x);
  const double gamma = MedianGamma(x.view(), 7).value();
  const auto below = std::lower_bound(distances.begin(), distances.end(), 1 / gamma);
  const double rank =
      static_cast<double>(below - distances.begin()) / static_cast<double>(distances.size());
  EXPECT_NEAR(rank, 0.5, 0.01);
  EXPECT_EQ(*MedianGamma(x.view(), 7), gamma);
  EXPECT_NE(*MedianGamma(x.view(), 8), gamma);
}

}  // namespace
}  // namespace phimap::testing
