#include "core/mapping/polynomial/polynomial_mapping.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

Plan MustMakePlan(const char* kernel, int64_t columns) {
  UseOneBlasThread();
  const InputStage input{.columns = columns};
  PlanPair plans = BuildPolynomial({.input = input, .serving_type = FloatType::kFloat64},
                                   *PolynomialKernelOf(MustParseKernel(kernel)), NeverStop)
                       .value();
  return std::move(plans.served);
}

// The features of the kernel (x₁y₁ + x₂y₂ + 1)² are 1, √2 x₁, √2 x₂, x₁², √2 x₁x₂, x₂².
TEST(PolynomialMappingTest, MonomialsAreThoseOfTheMultinomialTheorem) {
  const Plan plan = MustMakePlan("poly(degree=2, gamma=1, coef0=1)", 2);
  const auto& f = std::get<ExpansionFeatures<double>>(std::get<1>(plan.stages).features);
  EXPECT_EQ(f.degree, 2);
  EXPECT_THAT(f.columns, ElementsAre(-1, -1, -1, 0, -1, 1, 0, 0, 0, 1, 1, 1));
  const double root = std::sqrt(2.0);
  const double expected[] = {1, root, root, 1, root, 1};
  ASSERT_EQ(f.coefficients.size(), 6u);
  for (int j = 0; j < 6; ++j) EXPECT_NEAR(f.coefficients[j], expected[j], 1e-15);
}

// Returns a grid of side² points of [−bound, bound]², followed by 0, e₁, −e₁, e₂ and −e₂.
Matrix<double> GridAndAxes(int64_t side, double bound) {
  Matrix<double> x(side * side + 5, 2);
  for (int64_t i = 0; i < side * side; ++i) {
    x(i, 0) = bound * (2.0 * static_cast<double>(i % side) / static_cast<double>(side - 1) - 1);
    x(i, 1) = bound * (2.0 * static_cast<double>(i / side) / static_cast<double>(side - 1) - 1);
  }
  for (int64_t k = 0; k < 4; ++k) x(side * side + 1 + k, k / 2) = k % 2 == 0 ? 1 : -1;
  return x;
}

// BBV 6.1: the data are points x with |x_i| <= M on either side of the curve x₁²/a² ± x₂²/b² = 1.
// The label l(x) is the side. Points near the curve are left out: l(x)(x₁²/a² ± x₂²/b² − 1) >= c.
// In the φ-space of the kernel of degree 2, these points have the margin γ_l = c/((1 + 2M²)√(1 +
// 1/a⁴ + 1/b⁴)).
//
// The separator is the curve itself, written as a sum of φ of points on the axes. This is possible
// because (te·x + 1)² + (−te·x + 1)² = 2t²(e·x)² + 2, with a number t and the unit vector e of an
// axis. On the grid, the points nearest to the curve have a margin under 2γ_l. The values of γ_l
// are those of Table 1.
TEST(PolynomialMappingTest, SyntheticDataHaveTheMarginOfThePaper) {
  struct {
    double b, sign, c, bound, gamma;
  } const cases[] = {{1, 1, 0.2, 1.2, 0.0297603},
                     {1, -1, 0.2, 1.2, 0.0297603},
                     {0.5, 1, 0.1, 1.1, 0.0068919},
                     {0.5, -1, 0.1, 1.1, 0.0068919}};
  const Plan plan = MustMakePlan("poly(degree=2, gamma=1, coef0=1)", 2);
  constexpr int64_t kSide = 221;
  for (const auto& k : cases) {
    SCOPED_TRACE(::testing::Message() << k.b << " " << k.sign);
    const Matrix<double> x = GridAndAxes(kSide, k.bound);
    const Matrix<double> f = MustTransformWide(plan, WireRows(x));
    const double second = k.sign / (k.b * k.b);
    const double weights[] = {-2 - second, 0.5, 0.5, second / 2, second / 2};
    std::vector<double> w(static_cast<size_t>(f.cols()));
    double length = 0;
    for (int64_t j = 0; j < f.cols(); ++j) {
      for (int p = 0; p < 5; ++p) w[j] += weights[p] * f(kSide * kSide + p, j);
      length += w[j] * w[j];
    }
    EXPECT_NEAR(length, 1 + 1 + second * second, 1e-12);
    double least = 1;
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      const double side = x(i, 0) * x(i, 0) + second * x(i, 1) * x(i, 1) - 1;
      if (std::abs(side) < k.c) continue;
      double product = 0;
      double square = 0;
      for (int64_t j = 0; j < f.cols(); ++j) {
        product += w[j] * f(i, j);
        square += f(i, j) * f(i, j);
      }
      least = std::min(least, (side > 0 ? 1 : -1) * product / std::sqrt(length * square));
    }
    EXPECT_GE(least, k.gamma);
    EXPECT_LT(least, 2 * k.gamma);
  }
}

// An inner product of features is a sum of D positive and negative terms, with q + 2 roundings
// each. D is the number of monomials and q the degree. The sum of the terms' magnitudes is K(|x|,
// |y|).
TEST(PolynomialMappingTest, InnerProductsAreTheKernelToRounding) {
  struct Case {
    const char* kernel;
    int64_t columns;
    int64_t monomials;
  };
  for (const Case& c :
       {Case{"linear()", 7, 7}, Case{"3*linear()", 7, 7}, Case{"poly(degree=1, coef0=2)", 4, 5},
        Case{"poly(degree=2, gamma=0.3, coef0=1)", 9, 55}, Case{"poly(degree=2)", 9, 45},
        Case{"2*(0.5*poly(degree=3, gamma=2, coef0=0.7))", 6, 84},
        Case{"poly(degree=6, gamma=0.5, coef0=1)", 3, 84}, Case{"poly(degree=9)", 2, 10},
        Case{"poly(degree=64, gamma=0.1, coef0=1)", 1, 65}}) {
    SCOPED_TRACE(c.kernel);
    const KernelExpression kernel = MustParseKernel(c.kernel);
    EXPECT_EQ(PolynomialKernelOf(kernel)->Monomials(c.columns), c.monomials);
    const Matrix<double> x = UniformRows({.rows = 30, .cols = c.columns, .seed = 1});
    Matrix<double> sizes(30, c.columns);
    for (int64_t i = 0; i < x.size(); ++i) sizes.data()[i] = std::abs(x.data()[i]);
    const Matrix<double> exact = NaiveKernelMatrix(kernel, x, x);
    const Matrix<double> size = NaiveKernelMatrix(kernel, sizes, sizes);
    const Matrix<double> f = MustTransformWide(MustMakePlan(c.kernel, c.columns), WireRows(x));
    ASSERT_EQ(f.cols(), c.monomials);
    const Matrix<double> gram = NaiveGram(f, f);
    for (int64_t i = 0; i < gram.size(); ++i) {
      EXPECT_NEAR(gram.data()[i], exact.data()[i], 3e-14 * size.data()[i]) << i;
    }
  }
}

TEST(PolynomialMappingTest, ABuildIsExactInEitherTypeAndSaysSo) {
  const Matrix<double> x = UniformRows({.rows = 400, .cols = 8, .seed = 2});
  for (const char* type : {"float32", "float64"}) {
    for (const char* kernel :
         {"poly(degree=3, gamma=scale, coef0=1)", "poly(degree=2, gamma=0.5)"}) {
      const BuiltVersion built =
          MustBuild(SpecOf(std::string("polynomial(dimensions=200, serving_type=") + type + ")",
                           kernel, true),
                    x);
      SCOPED_TRACE(built.provenance.spec_text + " " + built.provenance.kernel_text);
      EXPECT_EQ(built.output_columns,
                built.provenance.kernel_text.find("degree=3") != std::string::npos ? 165 : 36);
      ASSERT_TRUE(built.certificate.kernel_error.has_value());
      EXPECT_LE(built.certificate.kernel_error->max / built.certificate.kernel_error->scale,
                built.serving_type == FloatType::kFloat32 ? 1e-5 : 1e-13);
      EXPECT_THAT(built.certificate.theorem, HasSubstr("multinomial theorem"));
      EXPECT_EQ(built.certificate.landmarks, 0);
      EXPECT_EQ(FeaturesFrom(built, x).cols(), built.output_columns);
    }
  }
}

TEST(PolynomialMappingTest, MoreMonomialsThanDimensionsAreRefusedWithTheirCount) {
  const Matrix<double> x = UniformRows({.rows = 30, .cols = 8, .seed = 3});
  EXPECT_TRUE(
      Build(SpecOf("polynomial(dimensions=45)", "poly(degree=2, gamma=1, coef0=1)"), x).ok());
  EXPECT_THAT(
      Build(SpecOf("polynomial(dimensions=44)", "poly(degree=2, gamma=1, coef0=1)"), x).status(),
      IsError(StatusCode::kFailedPrecondition, "DIMENSIONS_TOO_MANY", "dimensions",
              AllOf(HasSubstr("has 45 monomials, more than dimensions=44"),
                    HasSubstr("ask for dimensions=45, or use f2"))));
  const absl::Status far =
      Build(SpecOf("polynomial(dimensions=65536)", "poly(degree=64, gamma=1, coef0=1)"), x)
          .status();
  EXPECT_THAT(far.message(), HasSubstr("over 65536 monomials"));
  EXPECT_THAT(far.message(), HasSubstr("no mapping has more than 65536 dimensions"));
  EXPECT_THAT(far.message(), Not(HasSubstr("ask for dimensions")));
}

TEST(PolynomialMappingTest, OtherKernelsAreRefused) {
  for (const char* kernel : {"rbf()", "poly(degree=2) + linear()", "linear()*linear()",
                             "-1*poly(degree=2)", "0*linear()", "poly(degree=2, gamma=0)"}) {
    EXPECT_EQ(DetailOf(SpecOf("polynomial(dimensions=5)", kernel).Validate())->reason,
              "KERNEL_NOT_APPLICABLE")
        << kernel;
  }
}

TEST(PolynomialMappingTest, ACoefficientBeyondFloat32IsServedInFloat64) {
  const Matrix<double> x = UniformRows({.rows = 300, .cols = 2, .seed = 4});
  const BuiltVersion built =
      MustBuild(SpecOf("polynomial(dimensions=9)", "1e100*poly(degree=2)"), x);
  EXPECT_EQ(built.serving_type, FloatType::kFloat64);
}

}  // namespace
}  // namespace phimap::testing
