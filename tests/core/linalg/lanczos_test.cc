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
