// Compares the error bounds of float64 kernel values with errors against formulas in long double.
#include "core/kernel/value_error.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

struct ValueCase {
  const char* kernel;
  int64_t columns;
  double centre;
  double spread;
  // The bound is at most this many times the largest error seen.
  double slack;
};

// Relative errors are computed in long double. NaiveKernelMatrix rounds to double, and this
// rounding would be a further error.
TEST(ValueErrorTest, BoundsWhatBlocksErrByOverTheRootsOfTheDiagonal) {
  for (const ValueCase& c : {
           ValueCase{"linear()", 20, 0, 1, 60},
           ValueCase{"rbf(gamma=1)", 2, 700, 1, 60},
           ValueCase{"poly(degree=4, gamma=0.1, coef0=1)", 20, 0, 2, 300},
           ValueCase{"laplacian(gamma=0.2)", 6, 3, 1, 100},
           ValueCase{"normalize(poly(degree=3, coef0=1))", 5, 0, 1, 1000},
           ValueCase{"exp(0.1*linear())", 10, 0, 2, 300},
           ValueCase{"weight(norm_power=3)*rbf(gamma=0.1)", 4, 1, 1, 300},
           ValueCase{"bilinear(matrix=[2, 1; 1, 3])", 2, 0, 1, 100},
       }) {
    SCOPED_TRACE(c.kernel);
    Matrix<double> rows = NormalRows({.rows = 150, .cols = c.columns, .seed = 9});
    for (int64_t k = 0; k < rows.size(); ++k) rows.data()[k] = c.centre + c.spread * rows.data()[k];
    const KernelExpression kernel = MustParseKernel(c.kernel);
    const KernelProgram program = KernelProgram::Compile(kernel);
    const std::vector<double> norms = SquaredNorms(rows.view());
    const std::vector<double> self = KernelDiagonal(program, rows.view(), norms);
    Matrix<double> values(150, 150);
    KernelBlock(program, rows.view(), norms, rows.view(), norms, values.view());
    const double bound = ValueErrorOf(program, rows.view(), self);
    double worst = 0;
    for (int64_t i = 0; i < 150; ++i) {
      const NaiveRow x(rows.row(i), rows.row(i) + c.columns);
      for (int64_t j = 0; j < i; ++j) {
        const NaiveRow y(rows.row(j), rows.row(j) + c.columns);
        const long double exact = NaiveKernelOfRows(kernel.root(), x, y);
        const auto error = static_cast<double>(std::abs(values(i, j) - exact));
        worst = std::max(worst, error / std::sqrt(self[i]) / std::sqrt(self[j]));
      }
    }
    EXPECT_LE(worst, bound);
    EXPECT_GE(worst * c.slack, bound);
  }
}

// The kernel is xᵀAy with A = v·vᵀ for v = (1, 0.1, 0.7). The first 100 rows are orthogonal to v,
// up to rounding.
TEST(ValueErrorTest, TellsRowsOfTheNullSpaceFromOthers) {
  const KernelProgram program = KernelProgram::Compile(
      MustParseKernel("bilinear(matrix=[1, 0.1, 0.7; 0.1, 0.01, 0.07; 0.7, 0.07, 0.49])"));
  Matrix<double> rows = NormalRows({.rows = 200, .cols = 3, .seed = 10});
  for (int64_t i = 0; i < 100; ++i) rows(i, 0) = -(0.1 * rows(i, 1) + 0.7 * rows(i, 2));
  const std::vector<double> self = KernelDiagonal(program, rows.view(), SquaredNorms(rows.view()));
  const std::vector<double> errors = SelfErrors(program, rows.view());
  int zeros = 0;
  for (int64_t i = 0; i < 100; ++i) zeros += self[i] <= kZeroRoundings * errors[i] ? 1 : 0;
  EXPECT_EQ(zeros, 100);
  for (int64_t i = 100; i < 200; ++i) EXPECT_GT(self[i], kZeroRoundings * errors[i]) << i;
}

TEST(ValueErrorTest, OfAnRbfNothingIsZeroHoweverFar) {
  const KernelProgram program = KernelProgram::Compile(MustParseKernel("rbf(gamma=1)"));
  Matrix<double> rows = NormalRows({.rows = 5, .cols = 3, .seed = 11});
  for (int64_t k = 0; k < rows.size(); ++k) rows.data()[k] *= 1e12;
  for (const double error : SelfErrors(program, rows.view(), 0x1p-24)) {
    EXPECT_LT(kZeroRoundings * error, 1e-9);
  }
}

}  // namespace
}  // namespace phimap::testing
