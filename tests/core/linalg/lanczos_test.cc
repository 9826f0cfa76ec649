#include "core/linalg/lanczos.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

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

// Ritz values lie inside of the spectrum. Each Ritz value has an eigenvalue within its residual. If
// a gap separates this eigenvalue from the others, the Ritz value has an error of at most the
// squared residual divided by the gap.
TEST(LanczosTest, FindsBothEndsOfLapack) {
  for (const int64_t m : {1, 2, 30, 400}) {
    Matrix<double> a = RandomSymmetric(m, 1);
    const SpectrumEnds ends = Find(a, Start(m)).value();
    const std::vector<double> exact = SymmetricEigenvalues(a.view()).value();
    const double norm = std::max(-exact.front(), exact.back());
    EXPECT_NEAR(ends.lowest, exact.front(), 2e-8 * norm) << m;
    EXPECT_NEAR(ends.highest, exact.back(), 2e-8 * norm) << m;
    EXPECT_NEAR(ends.norm(), std::max(norm, -norm), 2e-8 * std::abs(norm)) << m;
    EXPECT_LE(ends.residual, 1e-8 * std::abs(norm) + 1e-12) << m;
    EXPECT_LE(ends.steps, m);
  }
}

TEST(LanczosTest, AStartInTheSpanOfFewEigenvectorsEndsEarly) {
  Matrix<double> a(50, 50);
  for (int64_t i = 0; i < 50; ++i) a(i, i) = static_cast<double>(i) - 20;
  std::vector<double> start(50);
  start[3] = 1;
  start[40] = 2;
  const SpectrumEnds ends = Find(a, start).value();
  EXPECT_EQ(ends.steps, 2);
  EXPECT_NEAR(ends.lowest, -17, 1e-12);
  EXPECT_NEAR(ends.highest, 20, 1e-12);
}

TEST(LanczosTest, AMatrixOfZerosHasTheEndsZero) {
  const SpectrumEnds ends = Find(Matrix<double>(20, 20), Start(20)).value();
  EXPECT_EQ(ends.steps, 1);
  EXPECT_EQ(ends.norm(), 0);
}

TEST(LanczosTest, StepsThatRunOutLeaveTheResidualTheyReachedInsideTheSpectrum) {
  Matrix<double> a = RandomSymmetric(400, 2);
  const SpectrumEnds ends = Find(a, Start(400), 1e-12, 8).value();
  EXPECT_EQ(ends.steps, 8);
  const std::vector<double> exact = SymmetricEigenvalues(a.view()).value();
  EXPECT_GT(ends.lowest, exact.front());
  EXPECT_LT(ends.highest, exact.back());
  EXPECT_GE(ends.highest + ends.residual, exact.back() * 0.5);
  EXPECT_GT(ends.residual, 1e-6);
}

std::vector<double> NormalStart(int64_t m, uint64_t seed) {
  const Matrix<double> row = NormalRows({.rows = 1, .cols = m, .seed = seed});
  return {row.data(), row.data() + m};
}

// Bounds the norm of a diagonal matrix. This covers any matrix with these eigenvalues, because a
// normal start vector has the same distribution in every basis.
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

// Returns spectra on which Lanczos converges slowly. Some have many eigenvalues near their ends,
// like Chebyshev nodes. In one, a single eigenvalue is slightly outside of many others. Spectra
// with both signs, positive ones and a negative one are included.
std::vector<std::vector<double>> SlowSpectra(int64_t m) {
  std::vector<std::vector<double>> spectra(5, std::vector<double>(static_cast<size_t>(m)));
  for (int64_t i = 0; i < m; ++i) {
    const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(m);
    spectra[0][i] = std::cos(M_PI * at);
    spectra[1][i] = at;                                         // semidefinite
    spectra[2][i] = i == 0 ? -1 : 0.995 * std::cos(M_PI * at);  // one below the rest
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
  EXPECT_GT(under, 30);  // the estimate is often below the norm, so it needs the error term
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

// Shows that BoundNorm needs the number of steps that it takes. The spectrum consists of Chebyshev
// nodes and one eigenvalue above them. A polynomial can be small on the nodes if its degree is the
// number of steps. So a start vector with little of the top eigenvector does not show the top
// eigenvalue. With an eighth of the steps, the bound is below the norm for more than half of the
// draws.
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
  // The first number is (ln(2·1.648·20·1000)/0.1 + 1)/2 = (110.96… + 1)/2, rounded up.
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
  ExpectStopsAt(3, [&](Checkpoint checkpoint) {
    return FindSpectrumEnds(multiply, Start(60), 1e-12, 60, checkpoint).status();
  });
}

}  // namespace
}  // namespace phimap::testing
