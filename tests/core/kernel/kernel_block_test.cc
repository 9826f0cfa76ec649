#include "core/kernel/kernel_block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::MustParseKernel;
using testing::NaiveKernelMatrix;
using testing::UniformRows;

constexpr const char* kKernels[] = {"linear()", "poly(degree=3, gamma=0.5, coef0=1)",
                                    "rbf(gamma=0.4)", "rbf(gamma=1) + 0.1*linear()"};
// Products of 6 terms under 1 in magnitude: (6 + 2)·6·2^-53; the cube of numbers under 4 multiplies
// errors by 48, exp by 0.4 · 4. Together under 5e-13.
constexpr double kTolerance = 5e-13;

TEST(KernelBlockTest, BlockIsTheKernelOfEachPair) {
  const Matrix<double> x = UniformRows({.rows = 33, .cols = 6, .seed = 1});
  const Matrix<double> z = UniformRows({.rows = 70, .cols = 6, .seed = 2});
  for (const char* text : kKernels) {
    const KernelExpression kernel = MustParseKernel(text);
    Matrix<double> out(33, 70);
    KernelBlock(KernelProgram::Compile(kernel), x.view(), SquaredNorms(x.view()), z.view(),
                SquaredNorms(z.view()), out.view());
    const Matrix<double> expected = NaiveKernelMatrix(kernel, x, z);
    for (int64_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out.data()[i], expected.data()[i], kTolerance) << text;
    }
  }
}

TEST(KernelBlockTest, GramFillsTheLowerTriangleOnlyForSizesAroundItsTiles) {
  for (const int64_t n : {1, 2, 255, 256, 257, 520}) {
    const Matrix<double> x = UniformRows({.rows = n, .cols = 6, .seed = 3});
    for (const char* text : kKernels) {
      const KernelExpression kernel = MustParseKernel(text);
      Matrix<double> out = Matrix<double>::Uninit(n, n);
      std::fill_n(out.data(), out.size(), -77.0);
      ASSERT_TRUE(KernelGram(KernelProgram::Compile(kernel), x.view(), out.view(), NeverStop).ok());
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
          ASSERT_NEAR(
              out(i, j),
              static_cast<double>(testing::NaiveKernel(kernel.root(), x.row(i), x.row(j), 6)),
              kTolerance)
              << text << " " << i << ", " << j << " of " << n;
        }
        for (int64_t j = i + 1; j < n; ++j) ASSERT_EQ(out(i, j), -77.0);
      }
    }
  }
}

TEST(KernelBlockTest, DiagonalOfAnRbfIsExactlyOne) {
  const Matrix<double> x = UniformRows({.rows = 300, .cols = 9, .seed = 4});
  const KernelProgram program = KernelProgram::Compile(MustParseKernel("rbf(gamma=123.4)"));
  Matrix<double> out(300, 300);
  ASSERT_TRUE(KernelGram(program, x.view(), out.view(), NeverStop).ok());
  const std::vector<double> diagonal = KernelDiagonal(program, SquaredNorms(x.view()));
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(out(i, i), 1.0);
    EXPECT_EQ(diagonal[i], 1.0);
  }
}

TEST(KernelBlockTest, StridedViewsAreReadWithinTheirColumns) {
  Matrix<double> wide = UniformRows({.rows = 20, .cols = 10, .seed = 5});
  for (int64_t i = 0; i < 20; ++i) {
    wide(i, 0) = wide(i, 9) = std::numeric_limits<double>::quiet_NaN();
  }
  const ConstMatrixView<double> x = wide.view().Block(0, 1, 20, 8);
  Matrix<double> out(20, 20);
  KernelBlock(KernelProgram::Compile(MustParseKernel("rbf(gamma=1)")), x, SquaredNorms(x), x,
              SquaredNorms(x), out.view());
  for (int64_t i = 0; i < out.size(); ++i) EXPECT_TRUE(std::isfinite(out.data()[i]));
}

TEST(KernelBlockTest, GramStopsAtTheCheckpointThatSaysSo) {
  const Matrix<double> x = UniformRows({.rows = 600, .cols = 2, .seed = 6});
  const KernelProgram program;
  std::vector<double> fractions;
  Matrix<double> out(600, 600);
  ASSERT_TRUE(KernelGram(program, x.view(), out.view(), [&](double fraction) {
                fractions.push_back(fraction);
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(fractions.size(), 3u);  // tiles of 256 rows
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  for (size_t stop = 0; stop < fractions.size(); ++stop) {
    size_t calls = 0;
    EXPECT_EQ(KernelGram(program, x.view(), out.view(),
                         [&](double) {
                           return calls++ == stop ? absl::CancelledError("stop") : absl::OkStatus();
                         }),
              absl::CancelledError("stop"));
    EXPECT_EQ(calls, stop + 1);
  }
}

}  // namespace
}  // namespace phimap
