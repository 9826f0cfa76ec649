#include "core/linalg/triangular_inverse.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Returns a well-conditioned lower triangle. The numbers above its diagonal must not be read.
Matrix<double> LowerTriangle(int64_t n, uint64_t seed) {
  Matrix<double> l = UniformRows({.rows = n, .cols = n, .seed = seed});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) l(i, j) /= static_cast<double>(n);
    l(i, i) = 2 + l(i, i);
    for (int64_t j = i + 1; j < n; ++j) l(i, j) = std::numeric_limits<double>::quiet_NaN();
  }
  return l;
}

TEST(TriangularInverseTest, TimesTheTransposedTriangleIsTheIdentityAndZeroBelow) {
  // The sizes are around the block size of 128 rows.
  for (const int64_t n : {0, 1, 2, 40, 127, 128, 129, 300}) {
    SCOPED_TRACE(n);
    const Matrix<double> l = LowerTriangle(n, 3);
    const Matrix<double> w = TransposedInverseOfLowerTriangle(l.view(), NeverStop).value();
    ASSERT_EQ(w.rows(), n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (j < i) {
          EXPECT_EQ(w(i, j), 0.0);
          continue;
        }
        // This is element (i, j) of the product W·Lᵀ. Its error is at most n·2⁻⁵³·Σ|w||l| < n·1e-15
        // here, for the n×n matrices W with elements w and L with elements l.
        double sum = 0;
        for (int64_t k = i; k <= j; ++k) sum += w(i, k) * l(j, k);
        EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-15 * static_cast<double>(n + 4));
      }
    }
  }
}

TEST(TriangularInverseTest, AnyNumberOfThreadsGivesTheSameBits) {
  const Matrix<double> l = LowerTriangle(700, 5);
  const Matrix<double> one = *TransposedInverseOfLowerTriangle(l.view(), NeverStop);
  for (const int threads : {2, 3, 8}) {
    const auto count = [&] { return threads; };
    const Matrix<double> many =
        TransposedInverseOfLowerTriangle(l.view(), TileControl(count, NeverStop)).value();
    EXPECT_TRUE(SameBits(one, many));
  }
}

TEST(TriangularInverseTest, AZeroOnTheDiagonalIsAnErrorThatNamesThePlace) {
  Matrix<double> l = LowerTriangle(4, 1);
  l(2, 2) = 0;
  EXPECT_THAT(TransposedInverseOfLowerTriangle(l.view(), NeverStop).status(),
              IsError(StatusCode::kFailedPrecondition, _, _, HasSubstr("in row 2")));
}

TEST(TriangularInverseTest, ReportsRisingSharesAndStopsWhereItIsTold) {
  const Matrix<double> l = LowerTriangle(600, 2);
  const std::vector<double> shares = ExpectStopsEverywhere([&](Checkpoint checkpoint) {
    return TransposedInverseOfLowerTriangle(l.view(), checkpoint).status();
  });
  ASSERT_GE(shares.size(), 3u);
  EXPECT_EQ(shares[0], 0);
  EXPECT_LT(shares[1], shares[2]);
  EXPECT_LT(shares[2], 1);
}

}  // namespace
}  // namespace phimap::testing
