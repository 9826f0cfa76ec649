#include "core/linalg/pivoted_cholesky.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double MaxDiagonal(const Matrix<double>& m) {
  double largest = 0;
  for (int64_t i = 0; i < m.rows(); ++i) largest = std::max(largest, m(i, i));
  return largest;
}

double ResidualTrace(const PivotedCholesky& factored) {
  double trace = 0;
  for (const double residual : factored.residuals) trace += residual;
  return trace;
}

// Factors a copy of a matrix whose upper triangle is NaN, so that any use of this triangle shows in
// the result.
struct Factored {
  Factored(const Matrix<double>& m, double tolerance, bool is_proven = false) : l(m.Clone()) {
    UseOneBlasThread();
    for (int64_t i = 0; i < l.rows(); ++i) {
      for (int64_t j = i + 1; j < l.cols(); ++j) l(i, j) = kNaN;
    }
    result = FactorPivoted(l.view(), {.tolerance = tolerance, .is_proven = is_proven}, NeverStop);
  }
  Matrix<double> l;
  absl::StatusOr<PivotedCholesky> result;
};

// Checks a factorization with a second elimination in long double, without blocking, which uses the
// pivots that were chosen. At each step, the pivot must have the largest Schur diagonal up to
// rounding. The choice of pivots is not compared with another choice. It may differ between BLAS
// cores if two candidates differ only by round-off.
void ExpectGreedyFactor(const Matrix<double>& m, const Factored& factored, double tolerance) {
  ASSERT_TRUE(factored.result.ok()) << factored.result.status();
  const PivotedCholesky& chosen = *factored.result;
  const int64_t n = m.rows();
  const int64_t r = chosen.rank();
  const double slack = 10.0 * static_cast<double>(n) * kU * MaxDiagonal(m);
  std::vector<long double> schur(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) schur[i * n + j] = m(std::max(i, j), std::min(i, j));
  }
  std::vector<bool> taken(n, false);
  for (int64_t step = 0; step < r; ++step) {
    const int64_t p = chosen.pivots[step];
    ASSERT_TRUE(p >= 0 && p < n && !taken[p]);
    long double largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (!taken[i]) largest = std::max(largest, schur[i * n + i]);
    }
    const long double diagonal = schur[p * n + p];
    ASSERT_GE(diagonal, largest - slack) << "step " << step;
    ASSERT_NEAR(chosen.diagonal[step], static_cast<double>(diagonal), slack) << "step " << step;
    ASSERT_GT(chosen.diagonal[step], tolerance);
    taken[p] = true;
    for (int64_t i = 0; i < n; ++i) {
      if (taken[i]) continue;
      const long double factor = schur[i * n + p] / diagonal;
      for (int64_t j = 0; j < n; ++j) schur[i * n + j] -= factor * schur[p * n + j];
    }
  }
  double largest = 0;
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (taken[i]) continue;
    largest = std::max(largest, static_cast<double>(schur[i * n + i]));
    trace += static_cast<double>(schur[i * n + i]);
  }
  EXPECT_LE(largest, tolerance + slack);
  EXPECT_NEAR(chosen.largest_residual(), std::max(largest, 0.0), slack);
  EXPECT_NEAR(ResidualTrace(chosen), std::max(trace, 0.0), static_cast<double>(n) * slack);
  // Every row is either chosen or dropped.
  for (const int64_t row : chosen.dropped) taken[row] = true;
  EXPECT_EQ(std::count(taken.begin(), taken.end(), true), n);
}

// Checks that L_r L_rᵀ is the chosen block of M, within the documented backward error.
void ExpectReproducesPivotBlock(const Matrix<double>& m, const Factored& factored) {
  const PivotedCholesky& chosen = *factored.result;
  const int64_t n = m.rows();
  const double bound = 4.0 * n * n * kU * MaxDiagonal(m);
  for (int64_t i = 0; i < chosen.rank(); ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      long double sum = 0;
      for (int64_t k = 0; k <= j; ++k) {
        sum += static_cast<long double>(factored.l(i, k)) * factored.l(j, k);
      }
      const int64_t a = std::max(chosen.pivots[i], chosen.pivots[j]);
      const int64_t b = std::min(chosen.pivots[i], chosen.pivots[j]);
      ASSERT_NEAR(static_cast<double>(sum), m(a, b), bound) << i << ", " << j;
    }
  }
}

TEST(PivotedCholeskyTest, IsTheGreedyFactorForSizesAroundTheBlock) {
  for (const int64_t n : {1, 2, 3, 31, 62, 63, 64, 65, 66, 127, 128, 129, 192, 200}) {
    SCOPED_TRACE(n);
    const Matrix<double> x = NormalRows({.rows = n, .cols = n + 3, .seed = 10 + uint64_t(n)});
    const Matrix<double> m = NaiveGram(x, x);
    const Factored factored(m, 0);
    ExpectGreedyFactor(m, factored, 0);
    ExpectReproducesPivotBlock(m, factored);
    EXPECT_EQ(factored.result->rank(), n);
    EXPECT_EQ(factored.result->largest_residual(), 0);
    EXPECT_TRUE(factored.result->dropped.empty());
    EXPECT_TRUE(
        std::is_sorted(factored.result->diagonal.rbegin(), factored.result->diagonal.rend()));
  }
}

TEST(PivotedCholeskyTest, IsTheGreedyFactorOfSmoothKernelsAtEveryTolerance) {
  const Matrix<double> x = UniformRows({.rows = 150, .cols = 3, .seed = 5});
  const Matrix<double> m = NaiveKernelMatrix(MustParseKernel("rbf(gamma=0.3)"), x, x);
  for (const double tolerance : {0.5, 1e-2, 1e-5, 150 * 0x1p-24, 1e-9}) {
    SCOPED_TRACE(tolerance);
    const Factored factored(m, tolerance);
    ExpectGreedyFactor(m, factored, tolerance);
    ExpectReproducesPivotBlock(m, factored);
    EXPECT_LT(factored.result->rank(), 150);
  }
}

// Tests the documented promise at the default float64 tolerance n·u·max K_ii, where round-off
// decides.
TEST(PivotedCholeskyTest, SmoothKernelIsAcceptedAtFloat64Tolerance) {
  for (const int64_t n : {100, 300, 500}) {
    const Matrix<double> x = UniformRows({.rows = n, .cols = 2, .seed = 6});
    const Matrix<double> m = NaiveKernelMatrix(MustParseKernel("rbf(gamma=0.01)"), x, x);
    const Factored factored(m, static_cast<double>(n) * kU);
    ASSERT_TRUE(factored.result.ok()) << n << ": " << factored.result.status();
    EXPECT_LT(factored.result->rank(), 60) << n;
    ExpectReproducesPivotBlock(m, factored);
  }
}

TEST(PivotedCholeskyTest, EmptyAndZeroMatricesHaveRankZero) {
  EXPECT_EQ(Factored(Matrix<double>(0, 0), 0).result->rank(), 0);
  const Factored zero(Matrix<double>(5, 5), 0);
  EXPECT_EQ(zero.result->rank(), 0);
  EXPECT_EQ(ResidualTrace(*zero.result), 0);
}

TEST(PivotedCholeskyTest, TiesGoToTheLowestIndexOnTheIdentity) {
  for (const int64_t n : {5, 64, 65, 130}) {
    Matrix<double> m(n, n);
    for (int64_t i = 0; i < n; ++i) m(i, i) = 3;
    const Factored factored(m, 0);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(factored.result->pivots[i], i);
  }
}

// Several rows are equal. Round-off decides which of them becomes the pivot, because a row's last
// bits depend on its position in a BLAS tile.
TEST(PivotedCholeskyTest, OfEqualRowsOnlyOneIsAPivot) {
  for (const int64_t distinct : {3, 40, 70}) {
    const int64_t n = 3 * distinct;
    Matrix<double> x = NormalRows({.rows = n, .cols = 100, .seed = 7});
    for (int64_t i = distinct; i < n; ++i) std::copy_n(x.row(i % distinct), 100, x.row(i));
    const Matrix<double> m = NaiveGram(x, x);
    const Factored factored(m, static_cast<double>(n) * kU * MaxDiagonal(m));
    ASSERT_TRUE(factored.result.ok()) << factored.result.status();
    EXPECT_EQ(factored.result->rank(), distinct);
    std::set<int64_t> groups;
    for (const int64_t pivot : factored.result->pivots) groups.insert(pivot % distinct);
    EXPECT_EQ(static_cast<int64_t>(groups.size()), distinct);
    ExpectGreedyFactor(m, factored, static_cast<double>(n) * kU * MaxDiagonal(m));
  }
}

// The matrix has the blocks [[4, 2], [2, 4]] on its diagonal, so all Schur diagonals are exact. At
// first all of them are 4, then all are 3. Swaps move rows, so the position of a row is no longer
// its index. Ties must still be broken by index.
TEST(PivotedCholeskyTest, TiesGoByOriginalIndexAfterSwaps) {
  constexpr int64_t kPairs = 50;
  Matrix<double> m(2 * kPairs, 2 * kPairs);
  for (int64_t p = 0; p < kPairs; ++p) {
    m(2 * p, 2 * p) = m(2 * p + 1, 2 * p + 1) = 4;
    m(2 * p, 2 * p + 1) = m(2 * p + 1, 2 * p) = 2;
  }
  const Factored factored(m, 0);
  for (int64_t p = 0; p < kPairs; ++p) {
    EXPECT_EQ(factored.result->pivots[p], 2 * p);
    EXPECT_EQ(factored.result->pivots[kPairs + p], 2 * p + 1);
    EXPECT_EQ(factored.result->diagonal[p], 4);
    EXPECT_EQ(factored.result->diagonal[kPairs + p], 3);
  }
}

// The feature space of (x·y + 1)² on two inputs has six dimensions, the monomials of degree ≤ 2.
TEST(PivotedCholeskyTest, DataOfRankSixHasSixPivots) {
  const Matrix<double> x = UniformRows({.rows = 200, .cols = 2, .seed = 8});
  const Matrix<double> m = NaiveKernelMatrix(MustParseKernel("poly(degree=2, coef0=1)"), x, x);
  for (const double u : {0x1p-24, 0x1p-53}) {
    const double tolerance = 200 * u * MaxDiagonal(m);
    const Factored factored(m, tolerance);
    ASSERT_TRUE(factored.result.ok()) << factored.result.status();
    EXPECT_EQ(factored.result->rank(), 6);
    EXPECT_LE(factored.result->largest_residual(), tolerance);
    EXPECT_GE(ResidualTrace(*factored.result), 0);
  }
}

absl::Status ErrorOf(const Matrix<double>& m, double tolerance) {
  return Factored(m, tolerance).result.status();
}

Matrix<double> Symmetric2(double a, double b, double c) {
  Matrix<double> m(2, 2);
  m(0, 0) = a;
  m(0, 1) = m(1, 0) = b;
  m(1, 1) = c;
  return m;
}

TEST(PivotedCholeskyTest, IndefiniteMatricesAreNotFactored) {
  struct Case {
    double a, b, c;
    const char* what;
  };
  const Case kCases[] = {{0, 1, 0, "zero on the diagonal, nonzero entry beside it"},
                         {1, 2, 1, "determinant < 0"},
                         {1, 0, -1, "negative diagonal"},
                         {-1, 0, -1, "only negative diagonals"},
                         {1, 1 + 1e-13, 1, "determinant a little below 0"},
                         {1, 0, -1e-14, "a small diagonal that is negative"}};
  for (const Case& c : kCases) {
    EXPECT_THAT(ErrorOf(Symmetric2(c.a, c.b, c.c), 0),
                IsError(StatusCode::kFailedPrecondition, "KERNEL_NOT_POSITIVE_SEMIDEFINITE"))
        << c.what;
  }
}

TEST(PivotedCholeskyTest, SigmoidGramIsIndefinite) {
  for (const int64_t n : {10, 64, 100}) {
    const Matrix<double> x = NormalRows({.rows = n, .cols = 3, .seed = 9});
    Matrix<double> m = NaiveGram(x, x);
    for (int64_t i = 0; i < m.size(); ++i) m.data()[i] = std::tanh(m.data()[i] - 0.5);
    const absl::Status status = ErrorOf(m, static_cast<double>(n) * 0x1p-24);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << n << ": " << status;
  }
}

// A single negative eigenvalue, −10⁻⁶ in a random direction, is found among a hundred.
TEST(PivotedCholeskyTest, SmallNegativeEigenvalueIsFoundBelowTheTolerance) {
  constexpr int64_t kN = 100;
  const Matrix<double> basis = NormalRows({.rows = kN, .cols = 5, .seed = 11});
  Matrix<double> m = NaiveGram(basis, basis);
  const Matrix<double> v = NormalRows({.rows = 1, .cols = kN, .seed = 12});
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kN; ++j) m(i, j) -= 1e-6 * v(0, i) * v(0, j);
  }
  EXPECT_EQ(ErrorOf(m, 1e-9).code(), StatusCode::kFailedPrecondition);
}

TEST(PivotedCholeskyTest, PerturbationsWithinWhatValuesErrByAreAccepted) {
  // For z = (1, −1), the value zᵀMz is −2e-16. Errors of the entries of M can change this value by
  // 4.4e-16.
  EXPECT_TRUE(ErrorOf(Symmetric2(1, 1 + 1e-16, 1), 0).ok());
  EXPECT_FALSE(ErrorOf(Symmetric2(1, 1 + 1e-14, 1), 0).ok());
  // A diagonal under the tolerance does not excuse a larger entry beside it.
  EXPECT_TRUE(ErrorOf(Symmetric2(1e-8, 1e-8, 1e-8), 1e-7).ok());
  EXPECT_FALSE(ErrorOf(Symmetric2(1e-8, 1e-6, 1e-8), 1e-7).ok());
}

// The matrix of ones is positive semidefinite. Here its entries have errors of at most β. If the
// stated error is only β/100, the matrix must be refused. If the stated error is β, nothing is
// proven, and the rank must be 1. If the matrix is known to be semidefinite, the factorization must
// end where the rank ends.
TEST(PivotedCholeskyTest, WhatErrorsOfValuesCanMakeIsNoProof) {
  constexpr double kBeta = 1e-9;
  constexpr int64_t kN = 90;
  const Matrix<double> noise = UniformRows({.rows = kN, .cols = kN, .seed = 14});
  Matrix<double> m(kN, kN);
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      m(i, j) = m(j, i) = i == j ? 1 : 1 - kBeta * std::abs(noise(i, j));
    }
  }
  const auto factor = [&](const FactorLimits& limits) {
    Matrix<double> copy = m.Clone();
    return FactorPivoted(copy.view(), limits, NeverStop);
  };
  EXPECT_FALSE(factor({.tolerance = 4 * kBeta, .value_error = kBeta / 100}).ok());
  const auto unproven = factor({.tolerance = 4 * kBeta, .value_error = kBeta}).value();
  EXPECT_EQ(unproven.rank(), 1);
  const auto proven = factor({.tolerance = 0, .is_proven = true}).value();
  EXPECT_GE(proven.rank(), 1);
}

// A Schur diagonal far below −β proves nothing, because elimination multiplies the errors of kernel
// values.
TEST(PivotedCholeskyTest, EliminationThatMultipliesErrorsIsNoProof) {
  constexpr double kBeta = 1e-10;
  // The matrix [1 c; c 1] with c = 1 − ε, and a third row that is a combination of the two, with an
  // error of β.
  constexpr double kEpsilon = 1e-6;
  Matrix<double> m(3, 3);
  for (int64_t i = 0; i < 3; ++i) m(i, i) = 1;
  m(0, 1) = m(1, 0) = 1 - kEpsilon;
  // The third row is (1 + t)·x_1 − t·x_0, divided by its length. x_0 and x_1 stand for the first
  // two rows. With t = 30, the third row lies beyond x_1, as seen from x_0.
  const double t = 30;
  const double length = std::sqrt((1 + t) * (1 + t) + t * t - 2 * t * (1 + t) * (1 - kEpsilon));
  m(2, 0) = ((1 + t) * (1 - kEpsilon) - t) / length;
  m(2, 1) = (1 + t - t * (1 - kEpsilon)) / length;
  m(2, 0) -= kBeta;
  m(2, 1) += kBeta;
  for (int64_t j = 0; j < 2; ++j) m(j, 2) = m(2, j);
  const auto factor = [&](double value_error) {
    Matrix<double> copy = m.Clone();
    return FactorPivoted(copy.view(), {.tolerance = 1e-13, .value_error = value_error}, NeverStop)
        .status();
  };
  // The last Schur diagonal is about −2·β·30. Its magnitude is 30 times 2β, but it still proves
  // nothing.
  EXPECT_TRUE(factor(kBeta).ok()) << factor(kBeta);
  EXPECT_EQ(factor(kBeta / 100).code(), StatusCode::kFailedPrecondition);
}

TEST(PivotedCholeskyTest, DiagonalThatIsNotFiniteIsNamed) {
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    Matrix<double> m(70, 70);
    for (int64_t i = 0; i < 70; ++i) m(i, i) = 1;
    m(67, 67) = bad;
    const absl::Status status = ErrorOf(m, 0);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(DetailOf(status)->metadata.at("landmark"), "67");
  }
}

TEST(PivotedCholeskyTest, StopsAtTheCheckpointThatSaysSo) {
  const Matrix<double> x = NormalRows({.rows = 200, .cols = 220, .seed = 13});
  const Matrix<double> m = NaiveGram(x, x);
  const std::vector<double> shares = ExpectStopsEverywhere([&](Checkpoint checkpoint) {
    Matrix<double> copy = m.Clone();
    return FactorPivoted(copy.view(), {}, checkpoint).status();
  });
  ASSERT_EQ(shares.size(), 4u);  // one for each block of 64
  EXPECT_EQ(shares.front(), 0);
  EXPECT_LT(shares.back(), 1);
}

}  // namespace
}  // namespace phimap::testing
