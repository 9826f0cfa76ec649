#include "core/kernel/kernel_work.h"

#include <string>

#include "core/kernel/kernel_block.h"
#include "core/linalg/pivoted_cholesky.h"
#include "gtest/gtest.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

KernelExpression Parsed(const std::string& text) { return KernelExpression::Parse(text).value(); }

TEST(KernelWorkTest, CountsTheDimensionsOfTheFeatureSpace) {
  struct {
    const char* kernel;
    int64_t columns;
    std::optional<int64_t> dimension;
  } const cases[] = {
      {"linear()", 7, 7},
      {"3*linear()", 7, 7},
      {"poly(degree=1, coef0=1)", 7, 8},
      {"poly(degree=2, coef0=0)", 2, 3},  // x², xy, y²
      {"poly(degree=2, coef0=1)", 2, 6},  // 1, x, y and these
      {"poly(degree=2, coef0=1)", 16, 153},
      {"poly(degree=64, coef0=1)", 1, 65},
      {"linear() + poly(degree=2, coef0=1)", 2, 8},
      {"linear() * poly(degree=2, coef0=1)", 2, 12},
      {"rbf(gamma=1)", 2, std::nullopt},
      {"linear() + rbf(gamma=1)", 2, std::nullopt},
      {"linear() * rbf(gamma=scale)", 2, std::nullopt},
      {"poly(degree=64, coef0=1)", 65536, std::nullopt},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(FeatureDimension(Parsed(c.kernel), c.columns), c.dimension) << c.kernel;
  }
}

// The rank of a Gram matrix is at most the feature dimension. The Gram matrix of random rows has
// exactly this rank.
TEST(KernelWorkTest, NoGramMatrixHasAHigherRank) {
  const Matrix<double> rows = NormalRows({.rows = 60, .cols = 3});
  for (const char* text : {"linear()", "poly(degree=2, coef0=1)", "poly(degree=3, coef0=0)",
                           "linear() + poly(degree=2, coef0=0)"}) {
    const KernelExpression kernel = Parsed(text);
    Matrix<double> gram(60, 60);
    ASSERT_TRUE(
        KernelGram(KernelProgram::Compile(kernel), rows.view(), gram.view(), NeverStop).ok());
    double largest = 0;
    for (int i = 0; i < 60; ++i) largest = std::max(largest, gram(i, i));
    const auto factored =
        FactorPivoted(gram.view(), {.tolerance = 1e-11 * largest}, NeverStop).value();
    EXPECT_EQ(factored.rank(), FeatureDimension(kernel, 3)) << text;
  }
}

TEST(KernelWorkTest, TilesCoverTheTriangle) {
  for (int64_t n : {0, 1, 255, 256, 257, 1000, 2000}) {
    const double size = static_cast<double>(n);
    EXPECT_GE(TiledTriangle(n), size * (size + 1) / 2) << n;
    EXPECT_LE(TiledTriangle(n), size * (size + 256) / 2 + 256 * 128) << n;
  }
  EXPECT_EQ(TiledTriangle(300), 256.0 * 256 + 44.0 * 300);
}

TEST(KernelWorkTest, ValuesAreMeasuredInThoseOfAnRbf) {
  EXPECT_EQ(WorkOfValue(Parsed("rbf(gamma=median)"), 4).elements, 1);
  EXPECT_LT(WorkOfValue(Parsed("linear()"), 4).elements, 0.5);
  EXPECT_GT(WorkOfValue(Parsed("rbf(gamma=1) + rbf(gamma=2)"), 4).elements, 2);
}

TEST(KernelWorkTest, AKernelThatAsksForNoProductIsChargedNone) {
  for (const char* kernel : {"delta()", "laplacian(gamma=1)", "2*delta() + laplacian(gamma=2)"}) {
    EXPECT_EQ(WorkOfKernelBlock(3, 4, 5, WorkOfValue(Parsed(kernel), 5)).product_flops, 0)
        << kernel;
  }
  for (const char* kernel : {"linear()", "rbf(gamma=1)", "rbf(gamma=1)*laplacian(gamma=2)"}) {
    EXPECT_EQ(WorkOfKernelBlock(3, 4, 5, WorkOfValue(Parsed(kernel), 5)).product_flops, 120)
        << kernel;
  }
}

}  // namespace
}  // namespace phimap::testing
