// Tests what is said of the variance of Fourier features with orthogonal frequencies: it is smaller
// than with independent ones for rows near each other, and can be larger for rows far apart.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "core/mapping/fourier/fourier_mapping.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 4;

double MeanCosine(double z) { return std::exp(-z * z / 2); }
double VarianceOfCosine(double z) { return (1 + std::exp(-2 * z * z)) / 2 - std::exp(-z * z); }

// Returns E cos(a·l) for l with the χ law of four degrees, where E l²ᵏ = 2ᵏ(k + 1)!. Terms of the
// series are at most exp(a²/2), here 500, so 13 digits are left.
double MeanOverLengths(double a) {
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 80; ++k) {
    term *= -2 * a * a * (k + 1) / ((2.0 * k - 1) * (2.0 * k));
    sum += term;
  }
  return sum;
}

// Returns the variance of the mean of cos ωᵀδ over four orthogonal frequencies as a share of that
// over four independent ones, at z = √(2γ)·‖δ‖. The entries that two orthonormal rows have in one
// column are two coordinates of a uniform unit vector. In four dimensions such a pair is uniform on
// the unit disc, so the covariance of two terms is a mean over the disc: over a uniform angle and a
// uniform squared radius.
double ShareByQuadrature(double z) {
  constexpr int kSteps = 200;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double radius = std::sqrt((i + 0.5) / kSteps);
    for (int j = 0; j < kSteps; ++j) {
      const double angle = (j + 0.5) / kSteps * std::numbers::pi / 2;
      sum += MeanOverLengths(z * radius * std::cos(angle)) *
             MeanOverLengths(z * radius * std::sin(angle));
    }
  }
  const double covariance = sum / (kSteps * kSteps) - MeanCosine(z) * MeanCosine(z);
  return 1 + (kColumns - 1) * covariance / VarianceOfCosine(z);
}

// Measures the same share on frequencies as builds draw them.
double ShareByDraws(double z, const Matrix<double>& frequencies) {
  const int64_t groups = frequencies.rows() / kColumns;
  double squares = 0;
  for (int64_t g = 0; g < groups; ++g) {
    double mean = 0;
    for (int64_t j = 0; j < kColumns; ++j) {
      mean += std::cos(z * frequencies(g * kColumns + j, 0)) / kColumns;
    }
    squares += (mean - MeanCosine(z)) * (mean - MeanCosine(z));
  }
  return squares / static_cast<double>(groups) * kColumns / VarianceOfCosine(z);
}

TEST(OrthogonalFrequenciesTest, TheirVarianceIsSmallerNearbyAndCanBeLargerFarAway) {
  // As y approaches x, the share approaches 3/(p + 2).
  EXPECT_NEAR(ShareByQuadrature(0.1), 3.0 / (kColumns + 2), 0.01);
  EXPECT_NEAR(ShareByQuadrature(1), 0.41, 0.005);
  EXPECT_NEAR(ShareByQuadrature(3), 0.99, 0.005);
  EXPECT_NEAR(ShareByQuadrature(3.5), 1.015, 0.001);
  constexpr int64_t kGroups = 50'000;
  Matrix<double> frequencies = Matrix<double>::Uninit(kGroups * kColumns, kColumns);
  ASSERT_TRUE(
      FillOrthogonalNormalRows(1, StreamId::kFourierLengths, frequencies.view(), [](double) {
        return absl::OkStatus();
      }).ok());
  // The variance of N draws has a relative standard error of about √(2/N); five are allowed.
  const double slack = 5 * std::sqrt(2.0 / kGroups);
  for (const double z : {1.0, 3.5}) {
    EXPECT_NEAR(ShareByDraws(z, frequencies) / ShareByQuadrature(z), 1, slack) << z;
  }
}

TEST(OrthogonalFrequenciesTest, NoCertificatePromisesASmallerVariance) {
  const Matrix<double> rows = NormalRows({.rows = 300, .cols = kColumns, .seed = 1});
  for (const char* kernel : {"rbf(gamma=1)", "matern(nu=1.5, length_scale=2)"}) {
    const std::string theorem =
        MustBuild(SpecOf("fourier(dimensions=16, orthogonal=true)", kernel), rows)
            .certificate.theorem;
    EXPECT_THAT(theorem, HasSubstr("may be smaller or larger than with independent")) << kernel;
    EXPECT_THAT(theorem, Not(HasSubstr("variance is smaller"))) << kernel;
  }
}

}  // namespace
}  // namespace phimap::testing
