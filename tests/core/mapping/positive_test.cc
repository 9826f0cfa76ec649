// Tests that positive random features are unbiased and have the variance that the paper states.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kFeatures = 16;
constexpr int kPositiveSeeds = 1500;

// The mean and variance of F(x)·F(y) for two fixed rows, over many seeds.
struct Products {
  double mean = 0;
  double variance = 0;
};

// Returns two rows x and y with ‖x + y‖² of about 0.6. For such rows, the distribution of the
// products has no heavy tails, so its variance can be measured.
Matrix<double> TwoRows() {
  Matrix<double> rows(2, 3);
  const double numbers[] = {0.5, -0.2, 0.3, 0.1, 0.4, 0.2};
  std::copy_n(numbers, 6, rows.data());
  return rows;
}

Products Measured(const std::string& kernel, bool orthogonal) {
  const Matrix<double> stream = NormalRows({.rows = 3, .cols = 3, .seed = 9});
  const std::string mapping =
      absl::StrCat("positive(dimensions=", kFeatures,
                   ", orthogonal=", orthogonal ? "true" : "false", ", serving_type=float64)");
  const Matrix<double> rows = TwoRows();
  Products products;
  double squares = 0;
  for (int seed = 1; seed <= kPositiveSeeds; ++seed) {
    const Matrix<double> f =
        FeaturesFrom(MustBuild(SpecOf(mapping, kernel, false, seed), stream), rows);
    const double product = Dot(f.row(0), f.row(1), f.cols());
    products.mean += product / kPositiveSeeds;
    squares += product * product / kPositiveSeeds;
  }
  products.variance = squares - products.mean * products.mean;
  return products;
}

struct Law {
  double kernel = 0;
  double variance = 0;
};

// Returns the kernel value and the variance of F(x)·F(y) for factor·exp(gamma·xᵀy), by Lemma 2 of
// Choromanski and others 2021.
Law LawOf(double factor, double gamma) {
  const Matrix<double> rows = TwoRows();
  const double product = Dot(rows.row(0), rows.row(1), 3);
  const double sum =
      gamma * (Dot(rows.row(0), rows.row(0), 3) + Dot(rows.row(1), rows.row(1), 3) + 2 * product);
  const double kernel = factor * std::exp(gamma * product);
  return {kernel, kernel * kernel * std::exp(sum) * (1 - std::exp(-sum)) / kFeatures};
}

// The mean may deviate by six standard deviations. The variance is measured with 1,500 products, so
// it has a relative standard error of about 5 %. It may deviate by five standard errors, 25 %.
TEST(PositiveMappingTest, ProductsAreUnbiasedWithTheVarianceOfTheLaw) {
  const struct {
    const char* kernel;
    double factor;
    double gamma;
  } kCases[] = {{"exp(linear())", 1, 1}, {"3*exp(0.5*linear())", 3, 0.5}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.kernel);
    const Law law = LawOf(c.factor, c.gamma);
    const Products measured = Measured(c.kernel, /*orthogonal=*/false);
    EXPECT_NEAR(measured.mean, law.kernel, 6 * std::sqrt(law.variance / kPositiveSeeds));
    EXPECT_GT(measured.variance, 0.75 * law.variance);
    EXPECT_LT(measured.variance, 1.25 * law.variance);
  }
}

TEST(PositiveMappingTest, OrthogonalFrequenciesAreUnbiasedWithLessVariance) {
  const Law law = LawOf(1, 1);
  const Products measured = Measured("exp(linear())", /*orthogonal=*/true);
  EXPECT_NEAR(measured.mean, law.kernel, 6 * std::sqrt(law.variance / kPositiveSeeds));
  EXPECT_LT(measured.variance, 0.9 * law.variance);
  EXPECT_GT(measured.variance, 0);
}

TEST(PositiveMappingTest, FeaturesArePositiveAndCertified) {
  const Matrix<double> rows = NormalRows({.rows = 600, .cols = 4, .seed = 2});
  const BuiltVersion version =
      MustBuild(SpecOf("positive(dimensions=2048)", "exp(0.1*linear())"), rows);
  const Matrix<double> f = FeaturesFrom(version, rows);
  for (int64_t i = 0; i < f.size(); ++i) ASSERT_GT(f.data()[i], 0);
  ASSERT_TRUE(version.certificate.kernel_error.has_value());
  EXPECT_LT(version.certificate.kernel_error->mean, 0.1);
  EXPECT_THAT(version.certificate.theorem, HasSubstr("Choromanski"));
  // At x = (3, 0, …) and y = (−1, 0, …) the kernel exp(xᵀy) is e⁻³, and the variance of one feature
  // is e⁴ − 1 = 54 times its square: the error need not be small where the kernel is.
  EXPECT_THAT(version.certificate.theorem, AllOf(HasSubstr("even where K(x, y) is small"),
                                                 Not(HasSubstr("small where the kernel is"))));
}

TEST(PositiveMappingTest, KernelsThatOverflowOnTheStreamAreRefused) {
  Matrix<double> rows = NormalRows({.rows = 600, .cols = 4, .seed = 2});
  for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] *= 100;
  EXPECT_THAT(Build(SpecOf("positive(dimensions=64)", "exp(linear())"), rows).status(),
              IsError(StatusCode::kFailedPrecondition, "VALUE_NOT_REPRESENTABLE", _,
                      HasSubstr("standardize")));
}

TEST(PositiveMappingTest, OtherKernelsAreRefused) {
  for (const char* kernel : {"rbf(gamma=1)", "linear()", "exp(rbf(gamma=1))", "exp(0*linear())"}) {
    const absl::Status status = SpecOf("positive(dimensions=8)", kernel).Validate();
    EXPECT_EQ(ReasonOf(status), "KERNEL_NOT_APPLICABLE") << kernel;
    EXPECT_THAT(std::string(status.message()), HasSubstr("requires exp(linear())"));
  }
}

}  // namespace
}  // namespace phimap::testing
