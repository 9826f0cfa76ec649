// Tests what F2 promises for its landmarks: F(x_i)·F(x_j) equals K_ij up to the tolerance of the
// truncation and the rounding of the serving type. Each stream has exactly `landmarks` rows, so
// each row is a landmark.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "core/linalg/blas.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

struct AccuracyCase {
  const char* name;
  const char* kernel;
  int64_t landmarks;
  int64_t columns;
  bool standardize = false;
  // Rows are spread · N(0, 1) + offset.
  double spread = 1;
  double offset = 0;
  int64_t rank = 0;  // the expected rank; 0: unknown
};

const AccuracyCase kAccuracyCases[] = {
    {"rbf", "rbf(gamma=0.1)", 300, 10},
    {"rbf, rough", "rbf(gamma=5)", 200, 4},
    {"rbf far from the origin", "rbf(gamma=0.1)", 200, 8, false, 1, 1000},
    {"rbf, standardised", "rbf(gamma=scale)", 300, 16, true, 7, 100},
    {"rbf, median", "rbf(gamma=median)", 300, 6},
    {"rbf, smooth", "rbf(gamma=0.01)", 1000, 4},
    {"rbf, very smooth", "rbf(gamma=0.0001)", 500, 4},
    {"polynomial", "poly(degree=3, gamma=0.2, coef0=1)", 300, 6},
    {"polynomial of high degree", "poly(degree=8, gamma=0.05, coef0=1)", 300, 5},
    {"polynomial, standardised", "poly(degree=2, gamma=scale, coef0=1)", 200, 12, true, 3, 50},
    {"rank 6 of 10 landmarks", "poly(degree=2, coef0=1)", 10, 2, false, 0.3, 0, 6},
    {"rank 6 of 400 landmarks", "poly(degree=2, coef0=1)", 400, 2, false, 0.3, 0, 6},
    {"linear, folded", "linear()", 50, 7, false, 1, 0, 7},
    {"sum", "rbf(gamma=0.5) + 0.1*poly(degree=2, coef0=1)", 200, 5},
    {"product", "rbf(gamma=0.05)*poly(degree=2, coef0=1)", 200, 5},
};

Matrix<double> RowsOf(const AccuracyCase& c) {
  Matrix<double> x = NormalRows({.rows = c.landmarks, .cols = c.columns, .seed = 31});
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = c.spread * x.data()[i] + c.offset;
  return x;
}

// Returns the kernel matrix of the original rows under the resolved kernel. Rows are standardised
// by the textbook's formula. The function uses nothing else of the build than the two numbers in
// the kernel's text.
Matrix<double> GramOf(const AccuracyCase& c, const BuiltVersion& version, Matrix<double> x) {
  for (int64_t k = 0; c.standardize && k < x.cols(); ++k) {
    long double mean = 0;
    long double square = 0;
    for (int64_t i = 0; i < x.rows(); ++i) mean += x(i, k);
    mean /= x.rows();
    for (int64_t i = 0; i < x.rows(); ++i) square += (x(i, k) - mean) * (x(i, k) - mean);
    const long double deviation = std::sqrt(square / x.rows());
    for (int64_t i = 0; i < x.rows(); ++i) {
      x(i, k) = static_cast<double>((x(i, k) - mean) / deviation);
    }
  }
  const KernelExpression kernel = MustParseKernel(version.provenance.kernel_text.c_str());
  return NaiveKernelMatrix(kernel, x, x);
}

struct Errors {
  double largest = 0;       // max |F·F − K| / max K
  double tolerance = 0;     // tolerance of the truncation, as a share of each landmark's K(x, x)
  double residual_low = 0;  // min (K(x,x) − ‖F‖²) / max K
};

Errors Measure(const AccuracyCase& c, const char* serving_type) {
  const Matrix<double> x = RowsOf(c);
  const BuiltVersion version = MustBuild(
      SpecOf("f2(landmarks=" + std::to_string(c.landmarks) + ", serving_type=" + serving_type + ")",
             c.kernel, c.standardize),
      x);
  EXPECT_EQ(version.certificate.landmarks, c.landmarks);
  if (c.rank != 0) {
    EXPECT_EQ(version.certificate.rank, c.rank) << c.name;
  }
  const Matrix<double> k = GramOf(c, version, x.Clone());
  const Matrix<double> f = FeaturesFrom(version, x);
  Matrix<double> gram(f.rows(), f.rows());
  MultiplyTransposed(1, f.view(), f.view(), 0, gram.view());
  Errors errors;
  double scale = 0;
  for (int64_t i = 0; i < k.rows(); ++i) scale = std::max(scale, k(i, i));
  for (int64_t i = 0; i < k.rows(); ++i) {
    for (int64_t j = 0; j < k.rows(); ++j) {
      errors.largest = std::max(errors.largest, std::abs(gram(i, j) - k(i, j)) / scale);
    }
    errors.residual_low = std::min(errors.residual_low, (k(i, i) - gram(i, i)) / scale);
  }
  errors.tolerance = *version.certificate.tolerance;
  std::printf("%-28s %s: rank %4ld, error %.2e, tol %.2e, lowest residual %.1e\n", c.name,
              serving_type, static_cast<long>(*version.certificate.rank), errors.largest,
              errors.tolerance, errors.residual_low);
  return errors;
}

TEST(F2AccuracyTest, Float32ServingReproducesTheKernelOfTheLandmarks) {
  for (const AccuracyCase& c : kAccuracyCases) {
    const Errors errors = Measure(c, "float32");
    const double tolerance = static_cast<double>(c.landmarks) * 0x1p-24;
    EXPECT_EQ(errors.tolerance, tolerance) << c.name;
    EXPECT_LE(errors.largest, tolerance + 1e-5) << c.name;
    // The residual ρ(x) is at least 0 up to rounding, which is within the same bound as the errors
    // above.
    EXPECT_GE(errors.residual_low, -1e-5) << c.name;
  }
}

TEST(F2AccuracyTest, Float64ServingReproducesTheKernelOfTheLandmarks) {
  for (const AccuracyCase& c : kAccuracyCases) {
    const Errors errors = Measure(c, "float64");
    const double tolerance = static_cast<double>(c.landmarks) * 0x1p-53;
    // The tolerance is larger than this where kernel values have larger errors.
    EXPECT_GE(errors.tolerance, tolerance) << c.name;
    EXPECT_LE(errors.tolerance, 1e-12) << c.name;
    EXPECT_LE(errors.largest, errors.tolerance + 1e-12) << c.name;
    EXPECT_GE(errors.residual_low, -1e-12) << c.name;
  }
}

}  // namespace
}  // namespace phimap::testing
