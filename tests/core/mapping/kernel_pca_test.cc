#include "core/mapping/kernel_pca/kernel_pca.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
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

constexpr char kPcaKernel[] = "rbf(gamma=0.2)";

absl::StatusOr<KernelPca> BuildFrom(const Matrix<double>& landmarks, const char* kernel,
                                    const KernelPcaTask& pca) {
  UseOneBlasThread();
  const LandmarkTask task{.kernel = MustParseKernel(kernel),
                          .input = {.columns = landmarks.cols()},
                          .landmarks = landmarks.view(),
                          .serving_type = FloatType::kFloat64};
  return BuildKernelPca(task, pca, NeverStop);
}

// The eigenpairs of K, or of the centred K, computed by LAPACK, in the order of falling
// eigenvalues; and the means that centring subtracts.
struct Oracle {
  std::vector<double> values;
  Matrix<double> vectors;
  std::vector<double> means;
};
Oracle OracleOf(const Matrix<double>& landmarks, bool centred) {
  Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kPcaKernel), landmarks, landmarks);
  const int64_t m = k.rows();
  Oracle oracle{.values = {}, .vectors = Matrix<double>(m, m), .means = std::vector<double>(m)};
  if (centred) {
    double mean = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) oracle.means[i] += k(i, j) / static_cast<double>(m);
      mean += oracle.means[i] / static_cast<double>(m);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) k(i, j) += mean - oracle.means[i] - oracle.means[j];
    }
  }
  const std::vector<double> rising = SymmetricEigenvectors(k.view()).value();
  for (int64_t n = 0; n < m; ++n) {
    oracle.values.push_back(rising[m - 1 - n]);
    std::copy_n(k.row(m - 1 - n), m, oracle.vectors.row(n));
  }
  return oracle;
}

// Compares the features with their definition. The n-th feature is f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ
// (k(x_i, x) − μ_i), up to its sign. LAPACK computes the eigenvalue λ_n and its eigenvector αⁿ. An
// eigenvector of the iteration has an error of at most 1e-10·λ_1, divided by the distance to the
// next eigenvalue.
TEST(KernelPcaTest, FeaturesAreTheDefiningEquationWithLapacksEigenvectors) {
  const Matrix<double> landmarks = NormalRows({.rows = 150, .cols = 4, .seed = 1});
  const Matrix<double> x = NormalRows({.rows = 40, .cols = 4, .seed = 2});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kPcaKernel), x, landmarks);
  for (const bool centred : {false, true}) {
    const KernelPca pca =
        BuildFrom(landmarks, kPcaKernel, {.components = 6, .centred = centred, .seed = 3}).value();
    EXPECT_LE(pca.residual, 1e-10);
    const Oracle oracle = OracleOf(landmarks, centred);
    const Matrix<double> f = MustTransformWide(pca.served, WireRows(x));
    ASSERT_EQ(f.cols(), 6);
    for (int64_t n = 0; n < 6; ++n) {
      EXPECT_NEAR(pca.eigenvalues[n], oracle.values[n], 1e-10 * oracle.values[0]) << n;
      const double gap =
          std::min(n == 0 ? oracle.values[0] : oracle.values[n - 1] - oracle.values[n],
                   oracle.values[n] - oracle.values[n + 1]);
      // The tolerance is a product of three numbers plus rounding: the error of the eigenvector,
      // the length ‖k(S, x)‖ <= √150 of the vector of kernel values, and the inverse root of the
      // eigenvalue.
      const double tolerance =
          2 * std::sqrt(150 / oracle.values[n]) * (1e-10 * oracle.values[0] / gap + 1e-12);
      ASSERT_LE(tolerance, 1e-5);
      std::vector<double> expected(40);
      double agreement = 0;
      for (int64_t i = 0; i < 40; ++i) {
        for (int64_t j = 0; j < 150; ++j) {
          expected[i] += oracle.vectors(n, j) * (k(i, j) - oracle.means[j]);
        }
        expected[i] /= std::sqrt(oracle.values[n]);
        agreement += expected[i] * f(i, n);
      }
      for (int64_t i = 0; i < 40; ++i) {
        EXPECT_NEAR(f(i, n), agreement > 0 ? expected[i] : -expected[i], tolerance) << n;
      }
    }
  }
}

// The values of the n-th feature f_n on all landmarks form a vector of squared length λ_n, the n-th
// eigenvalue. These vectors are orthogonal to each other. If features are centred, each vector has
// mean 0.
TEST(KernelPcaTest, FeaturesOfTheLandmarksAreOrthogonalWithTheEigenvaluesAsSquares) {
  const Matrix<double> landmarks = NormalRows({.rows = 120, .cols = 3, .seed = 4});
  for (const bool centred : {false, true}) {
    const KernelPca pca =
        BuildFrom(landmarks, kPcaKernel, {.components = 8, .centred = centred, .seed = 5}).value();
    const Matrix<double> f = MustTransformWide(pca.served, WireRows(landmarks));
    double sum = 0;
    for (int64_t n = 0; n < 8; ++n) {
      sum += pca.eigenvalues[n];
      for (int64_t l = 0; l <= n; ++l) {
        double product = 0;
        double mean = 0;
        for (int64_t i = 0; i < 120; ++i) {
          product += f(i, n) * f(i, l);
          mean += f(i, n) / 120;
        }
        EXPECT_NEAR(product, n == l ? pca.eigenvalues[n] : 0, 1e-8 * pca.eigenvalues[0]);
        if (centred) {
          EXPECT_NEAR(mean, 0, 1e-10);
        }
      }
    }
    EXPECT_LT(sum, pca.trace);
    EXPECT_GT(sum, 0.5 * pca.trace);
  }
}

TEST(KernelPcaTest, ComponentsWithoutVarianceAreDropped) {
  const Matrix<double> landmarks = NormalRows({.rows = 60, .cols = 3, .seed = 6});
  const KernelPca pca =
      BuildFrom(landmarks, "linear()", {.components = 10, .centred = false, .seed = 7}).value();
  EXPECT_EQ(pca.eigenvalues.size(), 3u);
  EXPECT_EQ(pca.served.output_columns(), 3);
  // The features represent the kernel completely: F(x)·F(y) = x·y.
  const Matrix<double> f = MustTransformWide(pca.served, WireRows(landmarks));
  const Matrix<double> gram = NaiveGram(f, f);
  const Matrix<double> exact = NaiveGram(landmarks, landmarks);
  EXPECT_LE(LargestDifference(gram, exact), 1e-9);
}

// A probe of the first 256 landmarks would not find the negative eigenvalues, because these
// landmarks are close to each other. The other landmarks are not.
TEST(KernelPcaTest, AKernelWhoseLeadingPairsAreNegativeIsRefused) {
  Matrix<double> landmarks = NormalRows({.rows = 456, .cols = 4, .seed = 6});
  for (int64_t i = 0; i < 256; ++i) {
    for (int64_t j = 0; j < 4; ++j) landmarks(i, j) = 3 + 0.01 * landmarks(i, j);
  }
  InputStage input{.columns = 4};
  const LandmarkTask task{.kernel = MustParseKernel("sigmoid(gamma=1, coef0=0.5)"),
                          .input = std::move(input),
                          .landmarks = landmarks.view(),
                          .serving_type = FloatType::kFloat64};
  for (const int64_t components : {5, 100}) {  // by the iteration, and by LAPACK
    EXPECT_THAT(
        BuildKernelPca(task, {.components = components, .centred = false, .seed = 1}, NeverStop)
            .status(),
        IsError(StatusCode::kFailedPrecondition, "KERNEL_NOT_POSITIVE_SEMIDEFINITE"));
  }
}

TEST(KernelPcaTest, OnePointHasNoComponents) {
  const Matrix<double> landmarks(20, 3);
  EXPECT_THAT(
      BuildFrom(landmarks, kPcaKernel, {.components = 2, .centred = true, .seed = 1}).status(),
      IsError(StatusCode::kFailedPrecondition, "KERNEL_ZERO"));
}

TEST(KernelPcaTest, ABuildApproximatesItsKernelInEitherType) {
  const Matrix<double> x = NormalRows({.rows = 600, .cols = 3, .seed = 8});
  for (const char* type : {"float32", "float64"}) {
    const std::string mapping =
        std::string("kpca(landmarks=300, dimensions=40, centred=false, serving_type=") + type + ")";
    const BuiltVersion built = MustBuild(SpecOf(mapping, "rbf(gamma=0.05)"), x);
    EXPECT_EQ(built.certificate.landmarks, 300);
    EXPECT_THAT(built.certificate.theorem, HasSubstr("Schölkopf, Smola, Müller 1998"));
    // The 40 leading components of a smooth kernel on 3 inputs leave under 1e-3 of the trace.
    ASSERT_TRUE(built.certificate.kernel_error.has_value());
    EXPECT_LE(built.certificate.kernel_error->max, 0.05);
    EXPECT_LE(built.certificate.serving_error->max / built.certificate.serving_error->scale, 1e-3);
  }
}

}  // namespace
}  // namespace phimap::testing
