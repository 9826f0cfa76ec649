#include "core/linalg/lanczos.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "gtest/gtest.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::NormalRows;

Matrix<double> RandomSymmetric(int64_t m, uint64_t seed) {
  const Matrix<double> g = NormalRows({.rows = m, .cols = m, .seed = seed});
  Matrix<double> a = Matrix<double>::Uninit(m, m);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) a(i, j) = g(i, j) + g(j, i);
  }
  return a;
}

absl::StatusOr<SpectrumEnds> Find(const Matrix<double>& a, std::vector<double> start,
                                  double tolerance = 1e-8, int64_t max_steps = 300) {
  UseOneBlasThread();
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out, const TileControl&) {
    Multiply(1, v, a.view(), 0, out);
    return absl::OkStatus();
  };
  return FindSpectrumEnds(multiply, std::move(start), tolerance, max_steps, NeverStop);
}

std::vector<double> Start(int64_t m) {
  const Matrix<double> row = NormalRows({.rows = 1, .cols = m, .seed = 7});
  return {row.data(), row.data() + m};
}

// Ritz values lie inside the spectrum, and an eigenvalue within the residual of each; with a gap
// beside it the value itself is off by the square of that over the gap.
TEST(LanczosTest, FindsBothEndsOfLapack) {
  for (const int64_t m : {1, 2, 30, 400}) {
    Matrix<double> a = RandomSymmetric(m, 1);
    const absl::StatusOr<SpectrumEnds> ends = Find(a, Start(m));
    ASSERT_TRUE(ends.ok());
    const std::vector<double> exact = SymmetricEigenvalues(a.view()).value();
    const double norm = std::max(-exact.front(), exact.back());
    EXPECT_NEAR(ends->lowest, exact.front(), 2e-8 * norm) << m;
    EXPECT_NEAR(ends->highest, exact.back(), 2e-8 * norm) << m;
    EXPECT_NEAR(ends->norm(), std::max(norm, -norm), 2e-8 * std::abs(norm)) << m;
    EXPECT_LE(ends->residual, 1e-8 * std::abs(norm) + 1e-12) << m;
    EXPECT_LE(ends->steps, m);
  }
}

TEST(LanczosTest, AStartInTheSpanOfFewEigenvectorsEndsEarly) {
  Matrix<double> a(50, 50);
  for (int64_t i = 0; i < 50; ++i) a(i, i) = static_cast<double>(i) - 20;
  std::vector<double> start(50);
  start[3] = 1;
  start[40] = 2;
  const absl::StatusOr<SpectrumEnds> ends = Find(a, start);
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->steps, 2);
  EXPECT_NEAR(ends->lowest, -17, 1e-12);
  EXPECT_NEAR(ends->highest, 20, 1e-12);
}

TEST(LanczosTest, AMatrixOfZerosHasTheEndsZero) {
  const absl::StatusOr<SpectrumEnds> ends = Find(Matrix<double>(20, 20), Start(20));
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->steps, 1);
  EXPECT_EQ(ends->norm(), 0);
}

TEST(LanczosTest, StepsThatRunOutLeaveTheResidualTheyReachedInsideTheSpectrum) {
  Matrix<double> a = RandomSymmetric(400, 2);
  const absl::StatusOr<SpectrumEnds> ends = Find(a, Start(400), 1e-12, 8);
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->steps, 8);
  const std::vector<double> exact = SymmetricEigenvalues(a.view()).value();
  EXPECT_GT(ends->lowest, exact.front());
  EXPECT_LT(ends->highest, exact.back());
  EXPECT_GE(ends->highest + ends->residual, exact.back() * 0.5);
  EXPECT_GT(ends->residual, 1e-6);
}

std::vector<double> NormalStart(int64_t m, uint64_t seed) {
  const Matrix<double> row = NormalRows({.rows = 1, .cols = m, .seed = seed});
  return {row.data(), row.data() + m};
}

// Bounds the norm of a diagonal matrix: its basis does not matter to a normal start.
NormBounds BoundDiagonal(const std::vector<double>& values, uint64_t seed, double error,
                         double doubt) {
  UseOneBlasThread();
  const auto m = static_cast<int64_t>(values.size());
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out, const TileControl&) {
    for (int64_t i = 0; i < m; ++i) out(0, i) = values[i] * v(0, i);
    return absl::OkStatus();
  };
  return BoundNorm(multiply, NormalStart(m, seed), error, doubt, NeverStop).value();
}

// Spectra on which Lanczos is slow: dense at the ends, as those of noise and of Chebyshev's nodes,
// or with one eigenvalue little over a dense rest; of either sign, and semidefinite.
std::vector<std::vector<double>> SlowSpectra(int64_t m) {
  std::vector<std::vector<double>> spectra(5, std::vector<double>(static_cast<size_t>(m)));
  for (int64_t i = 0; i < m; ++i) {
    const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(m);
    spectra[0][i] = std::cos(M_PI * at);
    spectra[1][i] = at;                                         // semidefinite
    spectra[2][i] = i == 0 ? -1 : 0.995 * std::cos(M_PI * at);  // one below
    spectra[3][i] = i < m / 2 ? 1 - 1e-3 * at : 0.01 * at;      // half of them clustered
    spectra[4][i] = -std::pow(at, 4);
  }
  return spectra;
}

TEST(LanczosTest, TheNormIsBelowItsBoundAndNotFarBelow) {
  int under = 0;
  for (const int64_t m : {40, 300, 1000}) {
    for (const std::vector<double>& values : SlowSpectra(m)) {
      double norm = 0;
      for (const double value : values) norm = std::max(norm, std::abs(value));
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        const NormBounds bounds = BoundDiagonal(values, seed, 0.01, 1e-3);
        EXPECT_GE(bounds.above, norm) << m;
        EXPECT_LE(bounds.above, 1.0205 * norm) << m;
        EXPECT_LE(bounds.below, norm * (1 + 1e-12)) << m;
        EXPECT_EQ(bounds.steps, NormSteps(m, 0.01, 1e-3));
        under += bounds.below < norm * (1 - 1e-4) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(under, 30);  // without its error it is no bound
}

TEST(LanczosTest, TheNormOfDenseMatricesIsBelowItsBound) {
  UseOneBlasThread();
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Matrix<double> a = RandomSymmetric(250, seed);
    const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out,
                              const TileControl&) {
      Multiply(1, v, a.view(), 0, out);
      return absl::OkStatus();
    };
    const NormBounds bounds =
        BoundNorm(multiply, NormalStart(250, 100 + seed), 0.01, 1e-3, NeverStop).value();
    const std::vector<double> exact = SymmetricEigenvalues(a.view()).value();
    const double norm = std::max(-exact.front(), exact.back());
    EXPECT_GE(bounds.above, norm);
    EXPECT_LE(bounds.above, 1.0205 * norm);
    EXPECT_LE(bounds.below, norm * (1 + 1e-12));
  }
}

// One eigenvalue over Chebyshev's nodes, which a polynomial of the steps' degree is small on: that
// is where a start with little of its eigenvector misses it. An eighth of the steps mostly does.
TEST(LanczosTest, TheNormsBoundNeedsItsSteps) {
  constexpr int kDraws = 50;
  constexpr double kError = 0.01;
  std::vector<double> values = SlowSpectra(400)[0];
  for (double& value : values) value = 0.985 * value - 0.015;
  values[0] = 1;
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out, const TileControl&) {
    for (int64_t i = 0; i < 400; ++i) out(0, i) = values[i] * v(0, i);
    return absl::OkStatus();
  };
  int failed_early = 0;
  for (uint64_t seed = 1; seed <= kDraws; ++seed) {
    EXPECT_GE(BoundDiagonal(values, seed, kError, 1e-3).above, 1);
    const SpectrumEnds early = FindSpectrumEnds(multiply, NormalStart(400, seed), 0,
                                                NormSteps(400, kError, 1e-3) / 8, NeverStop)
                                   .value();
    const double spread = early.highest - early.lowest;
    failed_early += early.norm() + kError * spread / (1 - 2 * kError) < 1 ? 1 : 0;
  }
  EXPECT_GT(failed_early, kDraws / 2);
}

TEST(LanczosTest, NormStepsAreThoseOfTheBound) {
  // (ln(2·1.648·20·1000)/0.1 + 1)/2 = (110.96… + 1)/2
  EXPECT_EQ(NormSteps(400, 0.01, 1e-3), 56);
  EXPECT_EQ(NormSteps(65'536, 0.01, 1e-3), 69);
  EXPECT_EQ(NormSteps(30, 0.01, 1e-3), 30);
}

TEST(LanczosTest, StopsWhereItIsTold) {
  const Matrix<double> a = RandomSymmetric(60, 3);
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out, const TileControl&) {
    Multiply(1, v, a.view(), 0, out);
    return absl::OkStatus();
  };
  int calls = 0;
  const auto stop = [&](double) {
    return ++calls == 3 ? absl::CancelledError("stop") : absl::OkStatus();
  };
  EXPECT_EQ(FindSpectrumEnds(multiply, Start(60), 1e-12, 60, stop).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace phimap
