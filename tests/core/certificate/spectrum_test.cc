#include "core/certificate/spectrum.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Returns two spectra: that of the kernel matrix of the rows of `x`, and that of its projection
// onto the landmarks. The landmarks are the rows of `z`.
Spectrum Measure(const char* kernel, const Matrix<double>& x, const Matrix<double>& z) {
  UseOneBlasThread();
  const KernelProgram program = KernelProgram::Compile(MustParseKernel(kernel));
  Matrix<double> gram(z.rows(), z.rows());
  EXPECT_TRUE(KernelGram(program, z.view(), gram.view(), NeverStop).ok());
  const PivotedCholesky factored =
      FactorPivoted(gram.view(), {.tolerance = 1e-12}, NeverStop).value();
  const int64_t r = factored.rank();
  Matrix<double> pivots(r, z.cols());
  for (int64_t i = 0; i < r; ++i) {
    std::copy_n(z.row(factored.pivots[i]), z.cols(), pivots.row(i));
  }
  return MeasureSpectrum(program, x.view(), std::as_const(pivots).view(),
                         std::as_const(gram).view().Block(0, 0, r, r))
      .value();
}

// Returns the effective dimension d(λ) = tr(K/m·(K/m + λ)⁻¹) of the m×m matrix K = `k` at λ =
// `lambda`. Uses elimination and no eigenvalues.
double NaiveEffectiveDimension(Matrix<double> k, double lambda) {
  const int64_t m = k.rows();
  for (int64_t i = 0; i < k.size(); ++i) k.data()[i] /= static_cast<double>(m);
  Matrix<double> a = k.Clone();
  for (int64_t i = 0; i < m; ++i) a(i, i) += lambda;
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t i = 0; i < m; ++i) {
      if (i == p) continue;
      const double factor = a(i, p) / a(p, p);
      for (int64_t j = 0; j < m; ++j) {
        a(i, j) -= factor * a(p, j);
        k(i, j) -= factor * k(p, j);
      }
    }
  }
  double trace = 0;
  for (int64_t i = 0; i < m; ++i) trace += k(i, i) / a(i, i);
  return trace;
}

TEST(SpectrumTest, EffectiveDimensionsAreTraces) {
  const Matrix<double> x = NormalRows({.rows = 60, .cols = 3, .seed = 1});
  const Spectrum spectrum =
      Measure("rbf(gamma=0.3)", x, NormalRows({.rows = 20, .cols = 3, .seed = 2}));
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel("rbf(gamma=0.3)"), x, x);
  EXPECT_EQ(spectrum.rows, 60);
  EXPECT_NEAR(spectrum.trace, 1, 60 * 0x1p-52);  // the mean of 60 ones
  ASSERT_EQ(spectrum.effective_dimensions.size(), 5);
  double lambda = 1;
  for (const EffectiveDimension& dimension : spectrum.effective_dimensions) {
    lambda /= 10;
    EXPECT_NEAR(dimension.lambda, lambda, 1e-15);
    // Eigenvalues have an error of at most 60u, with the unit round-off u. So each term of the
    // effective dimension has a relative error of at most 60u/λ.
    EXPECT_NEAR(dimension.kernel, NaiveEffectiveDimension(k.Clone(), lambda), 1e-8);
  }
}

TEST(SpectrumTest, TheMappingsDimensionsBoundTheKernels) {
  const Matrix<double> x = NormalRows({.rows = 300, .cols = 4, .seed = 3});
  int broken = 0;
  for (const char* kernel : {"rbf(gamma=0.2)", "poly(degree=3, coef0=1)", "linear()"}) {
    for (const int64_t landmarks : {2, 20, 100}) {
      SCOPED_TRACE(absl::StrCat(kernel, " ", landmarks));
      const Spectrum spectrum =
          Measure(kernel, x, NormalRows({.rows = landmarks, .cols = 4, .seed = 4}));
      const double tau = spectrum.residual;
      EXPECT_GE(tau, 0);
      EXPECT_LE(tau, spectrum.trace);
      for (const EffectiveDimension& d : spectrum.effective_dimensions) {
        // Both dimensions have rounding errors. Each of the 300 eigenvalues has an error of at most
        // 300u times the trace, with the unit round-off u. These errors are divided by λ, which is
        // at least 1e-5 of the trace.
        EXPECT_LE(d.mapping, d.kernel + 1e-6);
        const double lost = 300 * tau / (300 * d.lambda + tau);
        EXPECT_LE(d.kernel, d.mapping + lost + 1e-6);
        broken += d.kernel > d.mapping + lost / 2 + 1e-6 ? 1 : 0;
      }
    }
  }
  // The bound is not far too large: with half of the allowed loss, it would be violated.
  EXPECT_GT(broken, 0);
}

TEST(SpectrumTest, LandmarksThatAreTheSampleLeaveNothing) {
  const Matrix<double> x = NormalRows({.rows = 80, .cols = 2, .seed = 5});
  const Spectrum spectrum = Measure("rbf(gamma=1)", x, x);
  EXPECT_LT(spectrum.residual, 1e-11);
  for (const EffectiveDimension& d : spectrum.effective_dimensions) {
    EXPECT_NEAR(d.mapping, d.kernel, 1e-5 * d.kernel);
  }
}

TEST(SpectrumTest, EigenvaluesAreKnownFallAndAreAtMost64) {
  // Ten equal rows lie along each of ten axes. Their lengths are 10 on the first axis, 9 on the
  // second, and so on down to 1. So the eigenvalues of K/m under the kernel x·y are the squares of
  // these lengths, divided by 10.
  Matrix<double> x(100, 10);
  for (int64_t i = 0; i < 100; ++i) x(i, i % 10) = static_cast<double>(10 - i % 10);
  const Spectrum spectrum = Measure("linear()", x, x);
  ASSERT_EQ(spectrum.eigenvalues.size(), 64);
  double trace = 0;
  for (int i = 0; i < 64; ++i) {
    const double expected = i < 10 ? (10 - i) * (10 - i) / 10.0 : 0;
    EXPECT_NEAR(spectrum.eigenvalues[i], expected, 1e-12) << i;
    trace += expected;
  }
  EXPECT_NEAR(spectrum.trace, trace, 1e-12);
  EXPECT_TRUE(std::is_sorted(spectrum.eigenvalues.rbegin(), spectrum.eigenvalues.rend()));
}

TEST(SpectrumTest, AKernelThatIsZeroHasNone) {
  const Matrix<double> zeros(5, 2);
  const Matrix<double> pivots = NormalRows({.rows = 1, .cols = 2, .seed = 6});
  Matrix<double> one(1, 1);
  one(0, 0) = 1;
  EXPECT_THAT(MeasureSpectrum(KernelProgram::Compile(MustParseKernel("linear()")), zeros.view(),
                              pivots.view(), std::as_const(one).view())
                  .status(),
              IsError(StatusCode::kFailedPrecondition, "SPECTRUM_UNDEFINED"));
}

}  // namespace
}  // namespace phimap::testing
