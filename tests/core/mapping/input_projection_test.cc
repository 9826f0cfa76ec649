#include "core/mapping/input_projection.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/certificate/measurement.h"
#include "core/linalg/blas.h"
#include "core/plan/input_stage.h"
#include "core/random/random_stream.h"
#include "core/status/error.h"
#include "core/theory/projection_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::FeaturesFrom;
using ::testing::HasSubstr;
using testing::MustBuild;
using testing::MustParseKernel;
using testing::NaiveGram;
using testing::NaiveKernelMatrix;
using testing::NormalRows;
using ::testing::Not;
using testing::SpecOf;

TEST(InputProjectionTest, EntriesAreCoinsOfTheFrozenStreamAndTheScaleTakesTheRoot) {
  InputStage input{.columns = 6, .shift = {}, .scale = {1, 2, 3, 4, 5, 6}, .projection = {}};
  ProjectInput(9, 5, input);
  EXPECT_EQ(input.output_columns(), 9);
  const RandomStream coins(5, StreamId::kInputSigns);
  int64_t positive = 0;
  for (int64_t i = 0; i < 54; ++i) {
    const double entry = input.projection.data()[i];
    EXPECT_EQ(entry, coins.UniformBelow(i, 2) == 0 ? 1 : -1);
    positive += entry > 0 ? 1 : 0;
  }
  EXPECT_GT(positive, 10);
  EXPECT_LT(positive, 44);
  for (int k = 0; k < 6; ++k) EXPECT_DOUBLE_EQ(input.scale[k], (k + 1) / 3.0);
}

// AMS Theorem 6: all squared distances of n rows within 1 ± e with probability 1 − n^{−β} at
// s = (4 + 2β)/(e²/2 − e³/3)·ln n; inner products within (3/2)e of the mean squared length, or e
// for those that are not negative.
TEST(InputProjectionTest, DistancesAndInnerProductsKeepTheoremSix) {
  UseOneBlasThread();
  constexpr int64_t kRows = 60;
  constexpr double kE = 0.3;
  const auto s =
      static_cast<int64_t>(std::ceil(6 / (kE * kE / 2 - kE * kE * kE / 3) * std::log(60.0)));
  const Matrix<double> x = NormalRows({.rows = kRows, .cols = 300, .seed = 1});
  for (const uint64_t seed : {1, 2, 3}) {
    InputStage input{.columns = 300};
    ProjectInput(s, seed, input);
    const Matrix<double> y = AfterInputStage(input, x.view());
    const Matrix<double> before = NaiveGram(x, x);
    const Matrix<double> after = NaiveGram(y, y);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double d = before(i, i) + before(j, j) - 2 * before(i, j);
        const double projected = after(i, i) + after(j, j) - 2 * after(i, j);
        EXPECT_NEAR(projected / d, 1, kE);
        EXPECT_LE(std::abs(after(i, j) - before(i, j)), 1.5 * kE * (before(i, i) + before(j, j)));
      }
    }
  }
}

// E ‖Px‖² = ‖x‖², with a variance of at most 2‖x‖⁴/s. Six sigma.
TEST(InputProjectionTest, SquaredLengthsAreKeptOnAverage) {
  UseOneBlasThread();
  constexpr int kDraws = 2000;
  const Matrix<double> x = NormalRows({.rows = 1, .cols = 30, .seed = 2});
  const double square = NaiveGram(x, x)(0, 0);
  double mean = 0;
  for (int seed = 0; seed < kDraws; ++seed) {
    InputStage input{.columns = 30};
    ProjectInput(7, seed, input);
    const Matrix<double> y = AfterInputStage(input, x.view());
    mean += NaiveGram(y, y)(0, 0) / kDraws;
  }
  EXPECT_NEAR(mean, square, 6 * square * std::sqrt(2.0 / 7 / kDraws));
}

// For distances within 1 ± e the values of an rbf kernel move by at most e/exp(1), whatever gamma
// is: γd·exp(−γd) is at most 1/exp(1), and so is its slope in 1 ± e but for e².
TEST(InputProjectionTest, EveryLandmarkMappingIsBuiltOnTheProjectionAndMeasuredAgainstItsKernel) {
  const Matrix<double> x = NormalRows({.rows = 700, .cols = 200, .seed = 3});
  for (const char* mapping :
       {"f1(landmarks=40, input_dimensions=400)", "f2(landmarks=600, input_dimensions=400)",
        "f2(landmarks=40, input_dimensions=400, policy=rpcholesky)",
        "f2(landmarks=40, input_dimensions=400, policy=given)",
        "f3(landmarks=60, dimensions=20, input_dimensions=400)",
        "kpca(landmarks=60, dimensions=4, input_dimensions=400)"}) {
    SCOPED_TRACE(mapping);
    const BuiltVersion built = MustBuild(SpecOf(mapping, "rbf(gamma=scale)", true), x);
    EXPECT_EQ(built.input_columns, 200);
    EXPECT_THAT(built.certificate.theorem,
                HasSubstr("a projection ±1 to 400 columns, which by Achlioptas"));
    EXPECT_THAT(built.provenance.mapping_text, HasSubstr("input_dimensions=400"));
    EXPECT_TRUE(built.certificate.serving_error.has_value());
  }
}

TEST(InputProjectionTest, FeaturesAreOfTheKernelOfProjectedRowsAndTheErrorOfTheKernelItself) {
  const Matrix<double> x = NormalRows({.rows = 400, .cols = 100, .seed = 4});
  const BuiltVersion built =
      MustBuild(SpecOf("f2(landmarks=380, input_dimensions=60, serving_type=float64)",
                       "poly(degree=2, gamma=0.01, coef0=1)"),
                x);
  // poly of degree 2 in 60 columns has 1,891 dimensions, and 380 landmarks interpolate themselves.
  InputStage input{.columns = 100};
  ProjectInput(60, 1, input);
  const Matrix<double> y = AfterInputStage(input, x.view());
  const Matrix<double> f = FeaturesFrom(built, x);
  const Matrix<double> gram = NaiveGram(f, f);
  const KernelExpression kernel = MustParseKernel("poly(degree=2, gamma=0.01, coef0=1)");
  const Matrix<double> projected = NaiveKernelMatrix(kernel, y, y);
  int64_t exact = 0;
  for (int64_t i = 0; i < 400; ++i) {
    exact += std::abs(gram(i, i) - projected(i, i)) < 1e-9 * projected(i, i) ? 1 : 0;
  }
  EXPECT_EQ(exact, 380);
  // The error is of K: it has the projection's in it, which is far larger than what 380 of 400 rows
  // leave.
  ASSERT_TRUE(built.certificate.kernel_error.has_value());
  EXPECT_GT(built.certificate.kernel_error->mean, 0.05);
}

TEST(InputProjectionTest, KernelsThatAreNoneOfDistancesOrInnerProductsAreRefused) {
  for (const char* kernel : {"laplacian(gamma=1)", "delta()", "rbf(gamma=1) + laplacian(gamma=1)",
                             "bilinear(diagonal=[1, 2])", "normalize(laplacian(gamma=1))"}) {
    const absl::Status status = SpecOf("f2(landmarks=5, input_dimensions=4)", kernel).Validate();
    EXPECT_EQ(DetailOf(status)->reason, "KERNEL_NOT_APPLICABLE") << kernel;
    EXPECT_THAT(status.message(), HasSubstr("input_dimensions"));
  }
  for (const char* kernel : {"rbf(gamma=1)", "cosine()", "normalize(poly(degree=2, coef0=1))",
                             "exp(linear())*weight(gaussian=0.5)"}) {
    EXPECT_TRUE(SpecOf("f2(landmarks=5, input_dimensions=4)", kernel).Validate().ok()) << kernel;
  }
}

TEST(InputProjectionTest, WithoutItNothingIsSaidOfIt) {
  const Matrix<double> x = NormalRows({.rows = 100, .cols = 4, .seed = 5});
  const BuiltVersion built = MustBuild(SpecOf("f2(landmarks=10)", "rbf(gamma=0.1)"), x);
  EXPECT_THAT(built.provenance.mapping_text, Not(HasSubstr("input_dimensions")));
  EXPECT_THAT(built.certificate.theorem, Not(HasSubstr("projection ±1")));
}

}  // namespace
}  // namespace phimap
