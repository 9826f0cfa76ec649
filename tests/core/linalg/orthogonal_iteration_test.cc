#include "core/linalg/orthogonal_iteration.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Returns a matrix with orthonormal rows: the eigenvectors of a random symmetric matrix.
Matrix<double> RandomBasis(int64_t m, uint64_t seed) {
  UseOneBlasThread();
  Matrix<double> basis = NormalRows({.rows = m, .cols = m, .seed = seed});
  EXPECT_TRUE(SymmetricEigenvectors(basis.view()).ok());
  return basis;
}

// Returns the matrix Σ λ_i u_i u_iᵀ, where u_i are the rows of `basis`.
Matrix<double> WithEigenvalues(const std::vector<double>& values, const Matrix<double>& basis) {
  const int64_t m = basis.cols();
  Matrix<double> a(m, m);
  for (size_t n = 0; n < values.size(); ++n) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) a(i, j) += values[n] * basis(n, i) * basis(n, j);
    }
  }
  return a;
}

absl::StatusOr<Eigenpairs> Iterate(const Matrix<double>& a, int64_t count, int64_t extra = 8,
                                   int64_t max_products = 1000) {
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out, const TileControl&) {
    Multiply(1, v, a.view(), 0, out);
    return absl::OkStatus();
  };
  return IterateOrthogonally(
      {.count = count, .max_products = max_products}, multiply,
      NormalRows({.rows = std::min(count + extra, a.rows()), .cols = a.rows(), .seed = 3}),
      NeverStop);
}

TEST(OrthogonalIterationTest, EigenvectorsOfLapackAreRowsThatSolveTheEquation) {
  const Matrix<double> basis = RandomBasis(40, 1);
  std::vector<double> values(40);
  for (int i = 0; i < 40; ++i) values[i] = i - 11.5;
  Matrix<double> a = WithEigenvalues(values, basis);
  const std::vector<double> found = SymmetricEigenvectors(a.view()).value();
  for (int i = 0; i < 40; ++i) {
    EXPECT_NEAR(found[i], values[i], 1e-12);
    EXPECT_NEAR(std::abs(Dot(a.row(i), basis.row(i), 40)), 1, 1e-12);
  }
}

// The residual is at most 1e-10·λ_1, and gaps between eigenvalues are at least λ_1/10, where λ_1 is
// the largest eigenvalue. So a vector has an error of at most 1e-9 of its length. A value has an
// error of at most (1e-10·λ_1)²/gap plus rounding.
TEST(OrthogonalIterationTest, FindsTheLeadingPairsOfLapack) {
  const Matrix<double> basis = RandomBasis(120, 2);
  std::vector<double> values = {10, 8, 6.5, 5, 3.5};
  for (int i = 5; i < 120; ++i) values.push_back(2 * std::pow(0.9, i));
  const Matrix<double> a = WithEigenvalues(values, basis);
  const Eigenpairs pairs = Iterate(a, 5).value();
  EXPECT_LE(pairs.residual, 1e-10);
  EXPECT_GT(pairs.products, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(pairs.values[i], values[i], 1e-12);
    EXPECT_NEAR(std::abs(Dot(pairs.vectors.row(i), basis.row(i), 120)), 1, 1e-15 * 120);
    double off = 0;
    const double sign = Dot(pairs.vectors.row(i), basis.row(i), 120) > 0 ? 1 : -1;
    for (int k = 0; k < 120; ++k) {
      off = std::max(off, std::abs(pairs.vectors(i, k) - sign * basis(i, k)));
    }
    EXPECT_LE(off, 1e-9);
  }
}

// Returns the sine of the angle between the i-th vector after `products` products and the i-th row
// of `basis`.
double SineAfter(int64_t products, int64_t i, const Matrix<double>& a,
                 const Matrix<double>& basis) {
  const Eigenpairs pairs = Iterate(a, 3, 2, products).value();
  EXPECT_EQ(pairs.products, products);
  const double cosine = Dot(pairs.vectors.row(i), basis.row(i), a.cols());
  double square = 0;
  for (int64_t k = 0; k < a.cols(); ++k) {
    const double off = pairs.vectors(i, k) - cosine * basis(i, k);
    square += off * off;
  }
  return std::sqrt(square);
}

// AMS section 2: the error decreases exponentially with the number of iterations. With b vectors,
// each product multiplies the error of pair i by λ_{b+1}/λ_i, a ratio of eigenvalues in falling
// order. The polynomials reduce the error slightly further. In this test, the error falls like this
// ratio to the power of 0.96 to 1.27 times the number of products.
TEST(OrthogonalIterationTest, TheErrorFallsExponentiallyWithTheRatioOfTheEigenvalues) {
  constexpr double kNext = 2;  // λ_6, as there are five vectors
  std::vector<double> values = {10, 8, 6, 3, 2.5};
  for (int i = 0; i < 45; ++i) values.push_back(kNext * std::pow(0.9, i));
  const Matrix<double> basis = RandomBasis(50, 12);
  const Matrix<double> a = WithEigenvalues(values, basis);
  for (int i = 0; i < 3; ++i) {
    const double before = SineAfter(5, i, a, basis);
    for (const int products : {6, 12}) {
      const double after = SineAfter(5 + products, i, a, basis);
      const auto holds = [&](double power) {
        return after <= before * std::pow(kNext / values[i], power * products);
      };
      EXPECT_TRUE(holds(0.9)) << i << " " << products << ": " << before << " " << after;
      EXPECT_FALSE(holds(1.5)) << i << " " << products << ": " << before << " " << after;
    }
  }
}

TEST(OrthogonalIterationTest, TheEntryOfLargestMagnitudeIsPositive) {
  const Matrix<double> a = WithEigenvalues({5, 4, 3, 2, 1}, RandomBasis(5, 4));
  const Eigenpairs pairs = Iterate(a, 4).value();
  for (int i = 0; i < 4; ++i) {
    const double* row = pairs.vectors.row(i);
    EXPECT_GT(*std::max_element(row, row + 5), -*std::min_element(row, row + 5)) << i;
  }
}

TEST(OrthogonalIterationTest, NegativeEigenvaluesCountByTheirModulus) {
  const Matrix<double> a = WithEigenvalues({1, -3, 2, 0.5, -0.1}, RandomBasis(60, 5));
  const Eigenpairs pairs = Iterate(a, 3).value();
  EXPECT_NEAR(pairs.values[0], -3, 1e-12);
  EXPECT_NEAR(pairs.values[1], 2, 1e-12);
  EXPECT_NEAR(pairs.values[2], 1, 1e-12);
}

// The matrix has fewer nonzero eigenvalues than the number of pairs that are computed, or none at
// all. The other eigenvalues must be 0 up to rounding, and all vectors must be orthonormal.
TEST(OrthogonalIterationTest, AMatrixOfLowRankHasZerosAndOrthonormalVectors) {
  for (const int rank : {0, 1, 3}) {
    const std::vector<double> all = {4, 3, 2};
    const Matrix<double> a = WithEigenvalues({all.begin(), all.begin() + rank}, RandomBasis(50, 6));
    const Eigenpairs pairs = Iterate(a, 6).value();
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(pairs.values[i], i < rank ? all[i] : 0, 1e-12) << rank;
      for (int j = 0; j <= i; ++j) {
        EXPECT_NEAR(Dot(pairs.vectors.row(i), pairs.vectors.row(j), 50), i == j ? 1 : 0, 1e-12)
            << rank << ": " << i << ", " << j;
      }
    }
  }
}

TEST(OrthogonalIterationTest, AllPairsOfASmallMatrixAreFoundAtOnce) {
  const Matrix<double> a = WithEigenvalues({3, 2, 1}, RandomBasis(3, 7));
  const Eigenpairs pairs = Iterate(a, 3).value();
  EXPECT_EQ(pairs.products, 1);
  EXPECT_NEAR(pairs.values[2], 1, 1e-14);
}

// Each product of plain power iteration would multiply the error of the last pair by 0.997^9. So it
// would need 850 products to reach 1e-10.
TEST(OrthogonalIterationTest, CloseEigenvaluesTakeHalfOfThePowersProducts) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back((i % 3 == 2 ? -1 : 1) * std::pow(0.997, i));
  const Matrix<double> a = WithEigenvalues(values, RandomBasis(200, 10));
  const Eigenpairs pairs = Iterate(a, 12, 8).value();
  EXPECT_LE(pairs.residual, 1e-10);
  EXPECT_LT(pairs.products, 850 / 2);
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(pairs.values[i], values[i], 1e-12) << i;
}

TEST(OrthogonalIterationTest, LapackFindsTheSamePairs) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back((i % 2 == 1 ? -1 : 1) * std::pow(0.9, i));
  const Matrix<double> a = WithEigenvalues(values, RandomBasis(60, 11));
  const Eigenpairs iterated = Iterate(a, 7, 8).value();
  const Eigenpairs factored = FactorEigenpairs(a.Clone(), 7).value();
  EXPECT_EQ(factored.products, 0);
  for (int i = 0; i < 7; ++i) {
    EXPECT_NEAR(factored.values[i], iterated.values[i], 1e-13) << i;
    for (int64_t k = 0; k < 60; ++k) {
      EXPECT_NEAR(factored.vectors(i, k), iterated.vectors(i, k), 1e-8) << i << " " << k;
    }
  }
}

TEST(OrthogonalIterationTest, MoreRowsThanAreWantedMakeItFaster) {
  const Matrix<double> basis = RandomBasis(80, 8);
  std::vector<double> values;
  for (int i = 0; i < 80; ++i) values.push_back(std::pow(0.8, i));
  const Matrix<double> a = WithEigenvalues(values, basis);
  // A product multiplies the error by 0.8^9 with 8 extra vectors, and by 0.8 with none.
  EXPECT_LT(3 * Iterate(a, 5, 8)->products, Iterate(a, 5, 0)->products);
}

TEST(OrthogonalIterationTest, SweepsThatRunOutLeaveTheResidualTheyReached) {
  std::vector<double> values;
  for (int i = 0; i < 80; ++i) values.push_back(1 - 0.001 * i);
  const Matrix<double> a = WithEigenvalues(values, RandomBasis(80, 9));
  const Eigenpairs pairs = Iterate(a, 5, 8, /*max_products=*/7).value();
  EXPECT_EQ(pairs.products, 7);
  EXPECT_GT(pairs.residual, 1e-6);
  EXPECT_LT(pairs.residual, 1);
}

TEST(OrthogonalIterationTest, StopsWhereItIsToldAndAtWhatIsNotFinite) {
  const Matrix<double> a = WithEigenvalues({3, 2.9, 2.8, 2.7, 2.6}, RandomBasis(60, 10));
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out, const TileControl&) {
    Multiply(1, v, a.view(), 0, out);
    return absl::OkStatus();
  };
  const OrthogonalIteration task{.count = 2, .tolerance = 1e-14};
  const auto iterate = [&](SymmetricProduct product, Checkpoint checkpoint) {
    const Matrix<double> start = NormalRows({.rows = 2, .cols = 60, .seed = 1});
    return IterateOrthogonally(task, product, start.Clone(), checkpoint).status();
  };
  ExpectStopsAt(2, [&](Checkpoint checkpoint) { return iterate(multiply, checkpoint); });
  const auto overflow = [&](ConstMatrixView<double>, MatrixView<double> out, const TileControl&) {
    for (int64_t i = 0; i < out.rows(); ++i) std::fill_n(out.row(i), out.cols(), HUGE_VAL);
    return absl::OkStatus();
  };
  EXPECT_EQ(ReasonOf(iterate(overflow, NeverStop)), "VALUE_NOT_FINITE");
}

}  // namespace
}  // namespace phimap::testing
