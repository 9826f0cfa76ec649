#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/certificate/measurement.h"
#include "core/linalg/blas.h"
#include "core/mapping/projection/random_projection.h"
#include "core/plan/plan.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"
#include "tests/support/rare_failures.h"

namespace phimap::testing {
namespace {

// Compares the coins of seed 5 with those of a Python program. This program has its own
// Philox4x32-10, which was checked with the known answers of Random123. The coins are from stream
// 19. A + stands for an upper bit of 0.
TEST(InputProjectionTest, EntriesAreCoinsOfTheFrozenStreamAndTheScaleTakesTheRoot) {
  const std::string kCoins[] = {"+------++", "--++-+++-", "+++++----",
                                "--++-+++-", "+++++++-+", "-+-+--+++"};
  InputStage input{.columns = 6, .shift = {}, .scale = {1, 2, 3, 4, 5, 6}, .projection = {}};
  ProjectInput(9, 5, input);
  EXPECT_EQ(input.output_columns(), 9);
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t k = 0; k < 9; ++k) {
      EXPECT_EQ(input.projection(i, k), kCoins[i][k] == '+' ? 1 : -1) << i << " " << k;
    }
  }
  for (int k = 0; k < 6; ++k) EXPECT_DOUBLE_EQ(input.scale[k], (k + 1) / 3.0);
}

// Projects 60 rows with 100 columns to s sums of coins. `distances` says whether all squared
// distances stay within 1 ± e times their values before. `inner_products` says whether each inner
// product changes by at most e times the sum of the two squared lengths, or 3/2 of that if it is
// negative.
struct KeptByCoins {
  bool distances = true;
  bool inner_products = true;

  KeptByCoins(const Matrix<double>& x, int64_t s, double e, uint64_t seed) {
    UseOneBlasThread();
    InputStage input{.columns = x.cols()};
    ProjectInput(s, seed, input);
    const Matrix<double> y = AfterInputStage(input, x.view());
    const Matrix<double> before = NaiveGram(x, x);
    const Matrix<double> after = NaiveGram(y, y);
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double d = before(i, i) + before(j, j) - 2 * before(i, j);
        const double projected = after(i, i) + after(j, j) - 2 * after(i, j);
        distances = distances && std::abs(projected / d - 1) <= e;
        const double allowed = (before(i, j) >= 0 ? 1 : 1.5) * e * (before(i, i) + before(j, j));
        inner_products = inner_products && std::abs(after(i, j) - before(i, j)) <= allowed;
      }
    }
  }
};

// Returns 60 rows. Rows 2k and 2k + 1 have nearly one direction, and others are nearly orthogonal.
Matrix<double> PairsOfRows() {
  Matrix<double> x = NormalRows({.rows = 60, .cols = 100, .seed = 1});
  for (int64_t i = 1; i < x.rows(); i += 2) {
    for (int64_t k = 0; k < x.cols(); ++k) x(i, k) = x(i - 1, k) + 0.1 * x(i, k);
  }
  return x;
}

// AMS Theorem 6: after a projection to s sums of coins, all squared distances of n rows are within
// 1 ± e times their values before, with probability 1 − n^{−β}. The theorem requires s = (4 +
// 2β)/(e²/2 − e³/3)·ln n, which is 683 for n = 60, e = 0.3 and β = 1. With a third of 683, at least
// one of the 1,770 distances is outside for almost every seed.
//
// Equation 3 of AMS bounds inner products by the errors of lengths and distances. The deviation of
// ⟨x, y⟩ is at most √2·‖x‖·‖y‖/√s, and the equation allows e(‖x‖² + ‖y‖²) ≥ 2e‖x‖‖y‖, which is
// e·√(2s) deviations: 11.1 at 683 sums, and still 6.4 at a third of them, for any rows. So a third
// is enough for every set of 60 rows (1,770·1.6e-10 is far below 1/60). Rows of one direction have
// the largest deviation. Theirs exceeds the bound at a twelfth, 56 sums, with 3.2 deviations.
TEST(InputProjectionTest, DistancesAndInnerProductsKeepTheoremSix) {
  constexpr double kE = 0.3;
  constexpr int kTrials = 300;
  const Matrix<double> x = PairsOfRows();
  const int64_t s = ProjectedKernelDimensions(kE, 60, 1.0 / 60).value();
  EXPECT_EQ(s, 683);
  struct Broken {
    int distances = 0;
    int inner_products = 0;
  };
  const auto broken = [&](int64_t sums, int trials) {
    Broken count;
    for (int seed = 1; seed <= trials; ++seed) {
      const KeptByCoins kept(x, sums, kE, static_cast<uint64_t>(seed));
      count.distances += kept.distances ? 0 : 1;
      count.inner_products += kept.inner_products ? 0 : 1;
    }
    return count;
  };
  const Broken stated = broken(s, kTrials);
  EXPECT_TRUE(AreAsRareAs(1.0 / 60, stated.distances, kTrials));
  EXPECT_EQ(stated.inner_products, 0);
  const Broken third = broken(s / 3, 50);
  EXPECT_FALSE(AreAsRareAs(1.0 / 60, third.distances, 50));
  EXPECT_EQ(third.inner_products, 0);
  EXPECT_FALSE(AreAsRareAs(1.0 / 60, broken(s / 12, kTrials).inner_products, kTrials));
}

// AMS section 5: a projection that keeps s of the d coordinates, scaled to the same squared length
// on average, is bad for rows that differ in a single coordinate. The squared distance of such rows
// becomes 0 or d/s times its true value. Sums of coins keep this distance. Here they keep it
// exactly, because for the projection P to s sums, each row of P/√s has length 1.
TEST(InputProjectionTest, CoordinateSamplingLosesRowsThatDifferInOneCoordinate) {
  constexpr int64_t kColumns = 300;
  constexpr int64_t kSums = 100;
  InputStage input{.columns = kColumns};
  ProjectInput(kSums, 1, input);
  Matrix<double> axes(kColumns, kColumns);
  for (int64_t k = 0; k < kColumns; ++k) axes(k, k) = 1;
  const Matrix<double> projected =
      NaiveGram(AfterInputStage(input, axes.view()), AfterInputStage(input, axes.view()));
  std::vector<bool> sampled(kColumns);
  const RandomStream random(1, StreamId::kSelfCheck);
  uint64_t index = 0;
  for (int64_t count = 0; count < kSums;) {
    const uint64_t k = random.UniformBelow(index++, kColumns);
    count += sampled[k] ? 0 : 1;
    sampled[k] = true;
  }
  int64_t lost = 0;
  int64_t tripled = 0;
  for (int64_t k = 0; k < kColumns; ++k) {
    EXPECT_NEAR(projected(k, k), 1, 1e-12) << k;
    // The rows x and y differ in coordinate k, with x − y = e_k. This is the squared length of e_k,
    // computed from the sampled coordinates.
    double by_coordinates = 0;
    for (int64_t c = 0; c < kColumns; ++c) {
      by_coordinates += sampled[c] ? axes(k, c) * axes(k, c) * kColumns / kSums : 0;
    }
    lost += by_coordinates == 0 ? 1 : 0;
    tripled += by_coordinates == 3 ? 1 : 0;
  }
  EXPECT_EQ(lost, kColumns - kSums);
  EXPECT_EQ(tripled, kSums);
}

// Projects x to s = 7 sums. The squared length ‖Px‖² has the mean ‖x‖² and a variance of at most
// 2‖x‖⁴/s. The mean over kDraws seeds may deviate by six standard deviations.
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

// Builds every landmark mapping on projected rows. If squared distances d are kept within 1 ± e,
// each value of an rbf kernel changes by at most e/exp(1), up to terms in e², for every gamma. The
// reason: the derivative of exp(−γd(1 ± e)) with respect to e has the magnitude γd·exp(−γd), which
// is at most 1/exp(1).
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
    EXPECT_THAT(built.provenance.spec_text, HasSubstr("input_dimensions=400"));
    EXPECT_TRUE(built.certificate.serving_error.has_value());
  }
}

TEST(InputProjectionTest, FeaturesAreOfTheKernelOfProjectedRowsAndTheErrorOfTheKernelItself) {
  const Matrix<double> x = NormalRows({.rows = 400, .cols = 100, .seed = 4});
  const BuiltVersion built =
      MustBuild(SpecOf("f2(landmarks=380, input_dimensions=60, serving_type=float64)",
                       "poly(degree=2, gamma=0.01, coef0=1)"),
                x);
  // The φ-space of poly of degree 2 in 60 columns has 1,891 dimensions. Features are exact for the
  // 380 rows that are landmarks.
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
  // The measured error is against K itself, so it includes the error of the projection. This is far
  // larger than the residual that is left with 380 of 400 rows as landmarks.
  ASSERT_TRUE(built.certificate.kernel_error.has_value());
  EXPECT_GT(built.certificate.kernel_error->mean, 0.05);
}

TEST(InputProjectionTest, KernelsThatAreNoneOfDistancesOrInnerProductsAreRefused) {
  for (const char* kernel : {"laplacian(gamma=1)", "delta()", "rbf(gamma=1) + laplacian(gamma=1)",
                             "bilinear(diagonal=[1, 2])", "normalize(laplacian(gamma=1))"}) {
    const absl::Status status = SpecOf("f2(landmarks=5, input_dimensions=4)", kernel).Validate();
    EXPECT_EQ(ReasonOf(status), "KERNEL_NOT_APPLICABLE") << kernel;
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
  EXPECT_THAT(built.provenance.spec_text, Not(HasSubstr("input_dimensions")));
  EXPECT_THAT(built.certificate.theorem, Not(HasSubstr("projection ±1")));
}

}  // namespace
}  // namespace phimap::testing
