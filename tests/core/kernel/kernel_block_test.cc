#include "core/kernel/kernel_block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_parts.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr const char* kBlockKernels[] = {
    "linear()",
    "poly(degree=3, gamma=0.5, coef0=1)",
    "rbf(gamma=0.4)",
    "rbf(gamma=1) + 0.1*linear()",
    "laplacian(gamma=0.7)",
    "sigmoid(gamma=0.4, coef0=0.1)",
    "delta() + rbf(gamma=1)",
    "cosine()",
    "bilinear(diagonal=[1, 0, 2, 3, 0.5, 1])",
    "weight(norm_power=1)*cosine()",
    "weight(norm_power=-1)",
    "weight(gaussian=0.5)*exp(linear())",
    "weight(constant=3)",
    "normalize(poly(degree=2, coef0=1))",
    "normalize(bilinear(diagonal=[1, 1, 2, 3, 0.5, 1]) + delta())",
    "normalize(weight(norm_power=2) + laplacian(gamma=1))",
    "exp(cosine() + 0.3*bilinear(diagonal=[1, 0, 2, 3, 0.5, 1]))"};
// Bound on the errors. A product is a sum of 6 terms under 1 in magnitude, with an error of (6 +
// 2)·6·2^-53. The cube of numbers under 4 multiplies this error by 48. exp multiplies it by 0.4 ·
// 4. exp of 0.3 times a bilinear form of up to 7.5 multiplies it by e^(1 + 2.25) · 2.25 < 60. ‖x‖⁻²
// is under 20 on these rows. The total is under 5e-13.
constexpr double kTolerance = 5e-13;

TEST(KernelBlockTest, BlockIsTheKernelOfEachPair) {
  const Matrix<double> x = UniformRows({.rows = 33, .cols = 6, .seed = 1});
  const Matrix<double> z = UniformRows({.rows = 70, .cols = 6, .seed = 2});
  for (const char* text : kBlockKernels) {
    const KernelExpression kernel = MustParseKernel(text);
    Matrix<double> out(33, 70);
    KernelBlock(KernelProgram::Compile(kernel), x.view(), SquaredNorms(x.view()), z.view(),
                SquaredNorms(z.view()), out.view());
    const Matrix<double> expected = NaiveKernelMatrix(kernel, x, z);
    EXPECT_LE(LargestDifference(out, expected), kTolerance) << text;
  }
}

// A kernel with the largest allowed number of weights, forms and choices of columns, on a number of
// rows that is not a multiple of the evaluator's chunk. The kernel has 16 terms, none over 48.
TEST(KernelBlockTest, LargestKernelIsComputedToo) {
  const char* const columns[kMaxColumnSums] = {"0", "1", "2", "3", "4", "5", "0:2", "1:4"};
  std::string text;
  for (int i = 0; i < kMaxKernelForms; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " + ", "weight(gaussian=", 0.01 * (i + 1),
                    ")*bilinear(diagonal=[", i + 1, ", 1, 1, 1, 1, 1])");
  }
  for (int i = 0; i < kMaxColumnSums; ++i) {
    absl::StrAppend(&text, " + weight(gaussian=", 0.1 + 0.01 * i, ")*linear(columns=", columns[i],
                    ")");
  }
  const KernelExpression kernel = MustParseKernel(text.c_str());
  const KernelProgram program = KernelProgram::Compile(kernel);
  ASSERT_EQ(program.form_count(), static_cast<size_t>(kMaxKernelFormCount));
  ASSERT_EQ(program.factors().size(), static_cast<size_t>(kMaxKernelFactors));
  const Matrix<double> x = UniformRows({.rows = 33, .cols = 6, .seed = 1});
  const Matrix<double> z = UniformRows({.rows = 70, .cols = 6, .seed = 2});
  Matrix<double> out(33, 70);
  KernelBlock(program, x.view(), SquaredNorms(x.view()), z.view(), SquaredNorms(z.view()),
              out.view());
  const Matrix<double> expected = NaiveKernelMatrix(kernel, x, z);
  EXPECT_LE(LargestDifference(out, expected), 16 * kTolerance);
}

TEST(KernelBlockTest, GramFillsTheLowerTriangleOnlyForSizesAroundItsTiles) {
  for (const int64_t n : {1, 2, 255, 256, 257, 520}) {
    const Matrix<double> x = UniformRows({.rows = n, .cols = 6, .seed = 3});
    for (const char* text : kBlockKernels) {
      const KernelExpression kernel = MustParseKernel(text);
      Matrix<double> out = Matrix<double>::Uninit(n, n);
      std::fill_n(out.data(), out.size(), -77.0);
      ASSERT_TRUE(KernelGram(KernelProgram::Compile(kernel), x.view(), out.view(), NeverStop).ok());
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
          ASSERT_NEAR(out(i, j),
                      static_cast<double>(NaiveKernel(kernel.root(), x.row(i), x.row(j), 6)),
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
  const std::vector<double> diagonal = KernelDiagonal(program, x.view(), SquaredNorms(x.view()));
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(out(i, i), 1.0);
    EXPECT_EQ(diagonal[i], 1.0);
  }
}

TEST(KernelBlockTest, DiagonalIsTheKernelOfEachRowWithItself) {
  const Matrix<double> x = UniformRows({.rows = 70, .cols = 6, .seed = 7});
  for (const char* text : kBlockKernels) {
    const KernelExpression kernel = MustParseKernel(text);
    const std::vector<double> diagonal =
        KernelDiagonal(KernelProgram::Compile(kernel), x.view(), SquaredNorms(x.view()));
    for (int64_t i = 0; i < 70; ++i) {
      ASSERT_NEAR(diagonal[i],
                  static_cast<double>(NaiveKernel(kernel.root(), x.row(i), x.row(i), 6)),
                  kTolerance)
          << text << " " << i;
    }
  }
}

TEST(KernelBlockTest, CosineOfAZeroRowIsZeroAndNormalizeHasNoValueThere) {
  Matrix<double> x = UniformRows({.rows = 2, .cols = 3, .seed = 8});
  for (int64_t k = 0; k < 3; ++k) x(0, k) = 0;
  Matrix<double> out(2, 2);
  const auto block = [&](const char* text) {
    KernelBlock(KernelProgram::Compile(MustParseKernel(text)), x.view(), SquaredNorms(x.view()),
                x.view(), SquaredNorms(x.view()), out.view());
  };
  block("cosine()");
  EXPECT_EQ(out(0, 0), 0);
  EXPECT_EQ(out(0, 1), 0);
  EXPECT_NEAR(out(1, 1), 1, 1e-15);
  block("normalize(linear())");
  EXPECT_TRUE(std::isnan(out(0, 0)));
  EXPECT_TRUE(std::isnan(out(0, 1)));
  EXPECT_NEAR(out(1, 1), 1, 1e-15);
}

TEST(KernelBlockTest, DeltaIsOneOnEqualRowsAlone) {
  Matrix<double> x = UniformRows({.rows = 3, .cols = 600, .seed = 9});
  std::copy_n(x.row(0), 600, x.row(2));
  x(1, 599) = x(0, 599);
  std::copy_n(x.row(0), 599, x.row(1));
  x(1, 300) = std::nextafter(x(1, 300), 2);
  Matrix<double> out(3, 3);
  KernelBlock(KernelProgram::Compile(MustParseKernel("delta()")), x.view(), SquaredNorms(x.view()),
              x.view(), SquaredNorms(x.view()), out.view());
  EXPECT_EQ(out(0, 1), 0);
  EXPECT_EQ(out(0, 2), 1);
  EXPECT_EQ(out(0, 0), 1);
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
  Matrix<double> out(600, 600);
  const std::vector<double> shares = ExpectStopsEverywhere([&](Checkpoint checkpoint) {
    return KernelGram(KernelProgram(), x.view(), out.view(), checkpoint);
  });
  EXPECT_EQ(shares.size(), 3u);  // one for each tile of 256 rows
}

}  // namespace
}  // namespace phimap::testing
