#include "core/landmark/rpcholesky.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/landmark/uniform_landmarks.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

absl::StatusOr<RandomPivots> Choose(const char* kernel, const Matrix<double>& pool,
                                    int64_t landmarks, uint64_t seed, int threads = 1,
                                    Checkpoint checkpoint = NeverStop) {
  UseOneBlasThread();
  return ChooseRandomPivots({.kernel = KernelProgram::Compile(MustParseKernel(kernel)),
                             .pool = pool.view(),
                             .landmarks = landmarks,
                             .seed = seed,
                             .threads = [&] { return threads; }},
                            checkpoint);
}

// Returns the sum of the residuals K(x, x) after eliminating the chosen rows one at a time, as in a
// textbook.
double NaiveResidualTrace(const char* kernel, const Matrix<double>& pool,
                          const std::vector<int64_t>& rows) {
  Matrix<double> left = NaiveKernelMatrix(MustParseKernel(kernel), pool, pool);
  for (const int64_t s : rows) {
    const double pivot = left(s, s);
    std::vector<double> column(static_cast<size_t>(pool.rows()));
    for (int64_t i = 0; i < pool.rows(); ++i) column[i] = left(i, s);
    for (int64_t i = 0; i < pool.rows(); ++i) {
      for (int64_t j = 0; j < pool.rows(); ++j) left(i, j) -= column[i] * column[j] / pivot;
    }
  }
  double trace = 0;
  for (int64_t i = 0; i < pool.rows(); ++i) trace += left(i, i);
  return trace;
}

TEST(RpCholeskyTest, ResidualIsWhatTheChosenRowsLeave) {
  const Matrix<double> pool = NormalRows({.rows = 300, .cols = 5, .seed = 3});
  for (const char* kernel : {"rbf(gamma=0.2)", "poly(degree=2, coef0=1)"}) {
    for (const int64_t d : {1, 20, 100}) {
      SCOPED_TRACE(absl::StrCat(kernel, " d=", d));
      const RandomPivots pivots = Choose(kernel, pool, d, 1).value();
      ASSERT_EQ(pivots.rows.size(), d);
      EXPECT_EQ(std::set<int64_t>(pivots.rows.begin(), pivots.rows.end()).size(), d);
      const double trace = NaiveResidualTrace(kernel, pool, {});
      EXPECT_NEAR(pivots.trace, trace, 1e-12 * trace);
      // poly has rank 21 here. After 21 rows, the residual is only round-off. Further rows must
      // still be chosen, but without dividing by this round-off.
      if (d > 20 && kernel[0] == 'p') {
        EXPECT_LE(pivots.residual_trace, 1e-9 * trace);
      } else {
        // The tolerance is the error of the residuals of n rows. From the residual of a row, d
        // squares are subtracted, which sum to at most K(x, x). The error is n·d·u·trace, plus
        // cancellation.
        EXPECT_NEAR(pivots.residual_trace, NaiveResidualTrace(kernel, pool, pivots.rows),
                    1e-9 * trace);
      }
    }
  }
}

TEST(RpCholeskyTest, RowsDoNotDependOnThreads) {
  const Matrix<double> pool = NormalRows({.rows = 3000, .cols = 8, .seed = 4});
  const RandomPivots one = Choose("rbf(gamma=0.125)", pool, 150, 9).value();
  for (const int threads : {2, 3, 7}) {
    const RandomPivots more = Choose("rbf(gamma=0.125)", pool, 150, 9, threads).value();
    EXPECT_EQ(more.rows, one.rows);
    EXPECT_EQ(more.residual_trace, one.residual_trace);
  }
  EXPECT_NE(Choose("rbf(gamma=0.125)", pool, 150, 10)->rows, one.rows);
}

// Draws two rows of six with 40,000 seeds and compares how often each ordered pair occurs with its
// probability. Drawing blocks with rejection must have exactly the law of drawing one row at a
// time. The probability of row i followed by row j is K_ii/tr K · S_jj/tr S, where S is the
// residual matrix after row i. The counts of the 30 pairs give a chi-square statistic with 29
// degrees of freedom. It has mean 29 and standard deviation 7.6, and may exceed the mean by six
// standard deviations. Seeds are fixed.
TEST(RpCholeskyTest, BlocksWithRejectionHaveTheLawOfOneRowAtATime) {
  const char* kernel = "rbf(gamma=0.5) + 0.2*linear()";
  const Matrix<double> pool = NormalRows({.rows = 6, .cols = 2, .seed = 8});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kernel), pool, pool);
  double trace = 0;
  for (int64_t i = 0; i < 6; ++i) trace += k(i, i);
  constexpr int kSeeds = 40000;
  std::map<std::pair<int64_t, int64_t>, int> count;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const RandomPivots pivots = Choose(kernel, pool, 2, seed).value();
    ++count[{pivots.rows[0], pivots.rows[1]}];
  }
  double chi_square = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const auto left = [&](int64_t j) { return k(j, j) - k(i, j) * k(i, j) / k(i, i); };
    double left_trace = 0;
    for (int64_t j = 0; j < 6; ++j) left_trace += j == i ? 0 : left(j);
    for (int64_t j = 0; j < 6; ++j) {
      if (j == i) continue;
      const double expected = kSeeds * k(i, i) / trace * left(j) / left_trace;
      const double difference = count[{i, j}] - expected;
      chi_square += difference * difference / expected;
    }
  }
  EXPECT_LT(chi_square, 29 + 6 * 7.6);
}

TEST(RpCholeskyTest, WhereNothingIsLeftTheRestAreOtherRows) {
  // The pool has rank 3 and contains every row twice.
  const Matrix<double> half = NormalRows({.rows = 20, .cols = 3, .seed = 5});
  Matrix<double> pool(40, 3);
  for (int64_t i = 0; i < 40; ++i) std::copy_n(half.row(i % 20), 3, pool.row(i));
  const RandomPivots pivots = Choose("linear()", pool, 40, 2).value();
  ASSERT_EQ(pivots.rows.size(), 40);
  EXPECT_EQ(std::set<int64_t>(pivots.rows.begin(), pivots.rows.end()).size(), 40);
  EXPECT_EQ(pivots.residual_trace, 0);
  // The three rows that explain everything come first, and none is a copy of another.
  EXPECT_LT(NaiveResidualTrace("linear()", pool, {pivots.rows.begin(), pivots.rows.begin() + 3}),
            1e-12 * pivots.trace);
  // All rows are 0, so nothing distinguishes them.
  const RandomPivots zeros = Choose("linear()", Matrix<double>(5, 2), 3, 2).value();
  EXPECT_EQ(zeros.rows.size(), 3);
}

// Each random stream has only one use. So the rows that fill up the choice are independent of the
// rows that the uniform policy would choose.
TEST(RpCholeskyTest, RowsThatFillUpAreIndependentOfUniformLandmarks) {
  constexpr int64_t kRows = 200;
  constexpr int64_t kChosen = 20;
  std::vector<int64_t> pool(kRows);
  std::iota(pool.begin(), pool.end(), 0);
  int common = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RandomPivots filled = Choose("linear()", Matrix<double>(kRows, 2), kChosen, seed).value();
    const std::vector<int64_t> uniform = UniformLandmarks(pool, kChosen, seed).value();
    const std::set<int64_t> rows(uniform.begin(), uniform.end());
    for (const int64_t row : filled.rows) common += static_cast<int>(rows.count(row));
  }
  // Over all seeds, 400 rows fill up the choices. Independent choices have a tenth of these in
  // common on average, with a standard deviation under 6. If both used the same stream, all 400
  // would be in common.
  EXPECT_NEAR(common, 40, 6 * 6);
}

TEST(RpCholeskyTest, StopsBetweenTilesAndReportsRisingShares) {
  const Matrix<double> pool = NormalRows({.rows = 2000, .cols = 4, .seed = 6});
  const std::vector<double> shares = ExpectStopsEverywhere([&](Checkpoint checkpoint) {
    return Choose("rbf(gamma=0.3)", pool, 60, 1, 1, checkpoint).status();
  });
  EXPECT_GT(shares.size(), 8);  // several blocks of 4 tiles each
}

// The clusters are far from the origin, so kernel values have errors of 4e-10, and the residual of
// a row can become −1e-10. This does not prove that the kernel is indefinite. If a kernel is known
// to be positive semidefinite, no such proof is searched for.
TEST(RpCholeskyTest, KernelOfFarClustersIsNotRefused) {
  Matrix<double> pool = NormalRows({.rows = 600, .cols = 2, .seed = 8});
  for (int64_t i = 0; i < pool.rows(); ++i) {
    pool(i, 0) = 0.05 * pool(i, 0) + 200.0 * static_cast<double>(i % 10) - 900;
    pool(i, 1) = 0.05 * pool(i, 1) + 130.0 * static_cast<double>(i * 7 % 10) - 600;
  }
  for (const bool proven : {false, true}) {
    const absl::StatusOr<RandomPivots> pivots =
        ChooseRandomPivots({.kernel = KernelProgram::Compile(MustParseKernel("rbf(gamma=1)")),
                            .pool = pool.view(),
                            .landmarks = 200,
                            .seed = 1,
                            .is_proven = proven,
                            .threads = [] { return 1; }},
                           NeverStop);
    ASSERT_TRUE(pivots.ok()) << pivots.status();
    EXPECT_LE(pivots->residual_trace, 1e-5 * pivots->trace);
  }
}

// The rows are (1000, 0) and (0, 1). After a row of one kind is chosen, only rows of the other kind
// have a residual. So the second choice is always a row of the other kind, even if it is a short
// row.
TEST(RpCholeskyTest, ShortRowsAreChosenToo) {
  Matrix<double> pool(400, 2);
  for (int64_t i = 0; i < 400; ++i) pool(i, i % 2) = i % 2 == 0 ? 1000 : 1;
  const RandomPivots pivots = Choose("linear()", pool, 2, 1).value();
  EXPECT_EQ(pivots.residual_trace, 0);
  EXPECT_NE(pivots.rows[0] % 2, pivots.rows[1] % 2);
}

TEST(RpCholeskyTest, SimilaritiesThatAreNotPositiveSemidefiniteAreRefused) {
  const Matrix<double> pool = NormalRows({.rows = 50, .cols = 3, .seed = 7});
  // ‖x‖² − 50 is negative for most rows, and (‖x‖² − 0.5)³ for short ones.
  for (const char* kernel : {"poly(degree=1, coef0=-50)", "poly(degree=3, coef0=-0.5)"}) {
    EXPECT_THAT(Choose(kernel, pool, 20, 1).status(),
                IsError(StatusCode::kFailedPrecondition, "KERNEL_NOT_POSITIVE_SEMIDEFINITE"))
        << kernel;
  }
}

}  // namespace
}  // namespace phimap::testing
