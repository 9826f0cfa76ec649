#include "core/mapping/polynomial_mapping.h"

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::Build;
using ::testing::ElementsAre;
using testing::FeaturesFrom;
using ::testing::HasSubstr;
using testing::MustBuild;
using testing::MustParseKernel;
using testing::NaiveGram;
using testing::NaiveKernelMatrix;
using testing::SpecOf;
using testing::UniformRows;

Plan MustMakePlan(const char* kernel, int64_t columns) {
  UseOneBlasThread();
  const InputStage input{.columns = columns};
  absl::StatusOr<PlanPair> plans =
      BuildPolynomial({.input = input, .serving_type = FloatType::kFloat64},
                      *PolynomialKernelOf(MustParseKernel(kernel)), NeverStop);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return std::move(plans->served);
}

// (x₁y₁ + x₂y₂ + 1)²: 1, √2 x₁, √2 x₂, x₁², √2 x₁x₂, x₂².
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

// Sums of D positive and negative terms of q + 2 roundings each; Σ|terms| is K(|x|, |y|).
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
    const Matrix<double> f =
        testing::MustTransformWide(MustMakePlan(c.kernel, c.columns), testing::WireRows(x));
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
      SCOPED_TRACE(built.provenance.mapping_text + " " + built.provenance.kernel_text);
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
  const absl::Status one_less =
      Build(SpecOf("polynomial(dimensions=44)", "poly(degree=2, gamma=1, coef0=1)"), x).status();
  EXPECT_EQ(one_less.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(one_less)->reason, "TOO_MANY_DIMENSIONS");
  EXPECT_EQ(DetailOf(one_less)->field, "spec.dimensions");
  EXPECT_THAT(one_less.message(), HasSubstr("has 45 monomials, more than dimensions=44"));
  const absl::Status far =
      Build(SpecOf("polynomial(dimensions=65536)", "poly(degree=64, gamma=1, coef0=1)"), x)
          .status();
  EXPECT_THAT(far.message(), HasSubstr("over 65536 monomials"));
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
}  // namespace phimap
