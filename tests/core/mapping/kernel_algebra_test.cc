// Tests every kernel of the algebra through a whole build: F1 has the values of the kernel, F2 is
// the projection of φ, and the certificate states what is known about the kernel's definiteness.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 3;

// Positive semidefinite kernels with values under 30 on normal rows.
constexpr const char* kKernels[] = {
    "laplacian(gamma=0.3)",
    "rbf(gamma=0.3, columns=0:2)*laplacian(gamma=0.2, columns=2)",
    "rbf(scales=[1, 2, 4])",
    "normalize(linear(columns=0:2) + cosine(columns=1:3))",
    "delta()",
    "cosine()",
    "bilinear(matrix=[2, 1, 0; 1, 2, 0; 0, 0, 0.5])",
    "bilinear(diagonal=[1, 0, 2])",
    "weight(norm_power=1)*rbf(gamma=0.2)",
    "weight(gaussian=0.3)*exp(0.6*linear())",
    "weight(constant=2) + laplacian(gamma=1)",
    "exp(cosine())",
    "normalize(poly(degree=2, coef0=1))",
    "normalize(rbf(gamma=0.5) + bilinear(diagonal=[1, 2, 3]) + 0.5*laplacian(gamma=0.2))",
};

Matrix<double> Rows(int64_t rows, uint64_t seed) {
  return NormalRows({.rows = rows, .cols = kColumns, .seed = seed});
}

// Returns the kernel of a version with its resolved numbers, parsed from the canonical text in the
// provenance.
KernelExpression KernelOf(const BuiltVersion& version) {
  return MustParseKernel(version.provenance.kernel_text.c_str());
}

// The landmarks are the rows themselves in another order, so each feature is a column of the kernel
// matrix. Only centring rounds the numbers to float64, with errors under 10·2⁻⁵³ each. Kernels with
// a slope under 100 turn these errors into errors under 1e-12.
TEST(KernelAlgebraTest, F1IsTheKernelAgainstEachLandmark) {
  const Matrix<double> rows = Rows(40, 1);
  for (const char* kernel : kKernels) {
    const BuiltVersion version =
        MustBuild(SpecOf("f1(landmarks=40, serving_type=float64)", kernel), rows);
    const Matrix<double> features = FeaturesFrom(version, rows);
    const Matrix<double> expected = NaiveKernelMatrix(KernelOf(version), rows, rows);
    for (int64_t j = 0; j < 40; ++j) {
      double closest = 1e300;
      for (int64_t l = 0; l < 40; ++l) {
        double worst = 0;
        for (int64_t i = 0; i < 40; ++i) {
          worst = std::max(worst, std::abs(features(i, j) - expected(i, l)));
        }
        closest = std::min(closest, worst);
      }
      EXPECT_LT(closest, 1e-12) << kernel << " feature " << j;
    }
  }
}

// On the landmarks themselves, F2(x)·F2(y) is K(x, y) up to two errors. The first is what the rank
// tolerance drops. It is at most √(ρ(x)ρ(y)) ≤ d·u·max K, with u = 2⁻⁵³ and d landmarks. The second
// is the rounding of features, whose weights are up to 1/√tolerance.
TEST(KernelAlgebraTest, F2OnAllRowsIsTheKernel) {
  const Matrix<double> rows = Rows(40, 2);
  for (const char* kernel : kKernels) {
    const BuiltVersion version =
        MustBuild(SpecOf("f2(landmarks=40, serving_type=float64)", kernel), rows);
    const Matrix<double> features = FeaturesFrom(version, rows);
    const Matrix<double> expected = NaiveKernelMatrix(KernelOf(version), rows, rows);
    EXPECT_LE(LargestDifference(NaiveGram(features, features), expected), 1e-6) << kernel;
  }
}

// The error of F2 on unseen rows is exactly the part of φ that is outside of the landmarks' span.
// For a kernel with few dimensions, 50 landmarks leave no such part.
TEST(KernelAlgebraTest, CertificatesMeasureTheKernel) {
  const Matrix<double> rows = Rows(600, 3);
  for (const char* kernel : {"cosine()", "bilinear(diagonal=[1, 0, 2])",
                             "weight(norm_power=1)*cosine()", "normalize(linear())"}) {
    const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=50)", kernel), rows);
    EXPECT_LE(*version.certificate.rank, kColumns) << kernel;
    EXPECT_LT(version.certificate.kernel_error->max / version.certificate.kernel_error->scale, 1e-5)
        << kernel;
    EXPECT_LT(*version.certificate.held_out_trace_residual, 1e-12) << kernel;
    EXPECT_THAT(version.certificate.warnings, IsEmpty()) << kernel;
  }
}

TEST(KernelAlgebraTest, GammaIsFrozenAtTheBuild) {
  const Matrix<double> rows = Rows(300, 4);
  for (const char* kernel : {"laplacian()", "sigmoid(coef0=0.5)", "exp(rbf(gamma=median))",
                             "normalize(laplacian(gamma=median) + rbf())"}) {
    const BuiltVersion version = MustBuild(SpecOf("f1(landmarks=20)", kernel), rows);
    const KernelExpression stored = KernelOf(version);
    EXPECT_FALSE(stored.NeedsScale() || stored.NeedsMedian()) << version.provenance.kernel_text;
    EXPECT_EQ(stored.ToText(), version.provenance.kernel_text);
  }
}

TEST(KernelAlgebraTest, NumbersBelowZeroAreRefusedWhereTheKernelTakesNone) {
  const Matrix<double> rows = Rows(60, 6);  // normal rows: every column has negative numbers
  EXPECT_THAT(
      Build(SpecOf("f2(landmarks=10)", "rbf(gamma=1) + additive_chi2(columns=1:3)"), rows).status(),
      IsError(
          StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE", _,
          HasSubstr("additive_chi2 accepts only numbers >= 0, but the smallest in column 1 is -")));
  BuildSpec standardised = SpecOf("f2(landmarks=10)", "histogram_intersection()");
  standardised.standardize = true;
  EXPECT_EQ(FieldOf(standardised.Validate()), "standardize");
  Matrix<double> positive = rows.Clone();
  for (int64_t i = 0; i < positive.size(); ++i) positive.data()[i] = std::abs(rows.data()[i]);
  for (const char* kernel : {"additive_chi2()", "chi2(gamma=0.5)", "histogram_intersection()"}) {
    const BuiltVersion version =
        MustBuild(SpecOf("f2(landmarks=60, serving_type=float64)", kernel), positive);
    const Matrix<double> features = FeaturesFrom(version, positive);
    const Matrix<double> expected = NaiveKernelMatrix(KernelOf(version), positive, positive);
    EXPECT_LE(LargestDifference(NaiveGram(features, features), expected), 1e-6) << kernel;
  }
}

TEST(KernelAlgebraTest, SimilaritiesWarnUnderF1AndAreRefusedUnderF2) {
  const Matrix<double> rows = Rows(300, 5);
  for (const char* kernel : {"sigmoid(gamma=1, coef0=-1)", "rbf(gamma=1) + sigmoid(gamma=-3)"}) {
    const BuiltVersion f1 = MustBuild(SpecOf("f1(landmarks=100)", kernel), rows);
    EXPECT_THAT(f1.certificate.warnings,
                ElementsAre(AllOf(HasSubstr("the kernel is not positive semidefinite: its Gram "
                                            "matrix on 100 landmarks has the eigenvalue -"),
                                  HasSubstr("no margin in a feature space is promised"))))
        << kernel;
    EXPECT_THAT(f1.certificate.theorem, HasSubstr("none: the theorems are of positive"));
    for (const char* mapping : {"f2(landmarks=100)", "f3(landmarks=100, dimensions=10)"}) {
      const BuildSpec spec = SpecOf(mapping, kernel);
      EXPECT_TRUE(spec.Validate().ok());  // the text does not show that the kernel is indefinite
      EXPECT_THAT(
          Build(spec, rows).status(),
          IsError(StatusCode::kFailedPrecondition, "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "kernel",
                  AllOf(HasSubstr("has the eigenvalue -"), HasSubstr("F1 takes any"))))
          << kernel;
    }
  }
}

// On equal rows, the Gram matrix of any kernel with K(x, x) ≥ 0 is a multiple of the matrix of
// ones, so it has no negative eigenvalue.
TEST(KernelAlgebraTest, WhatIsNotProvenIsBuiltWithAWarning) {
  Matrix<double> rows(60, 1);
  for (int64_t i = 0; i < 60; ++i) rows(i, 0) = 1;
  for (const char* mapping : {"f1(landmarks=2)", "f2(landmarks=2)"}) {
    const BuiltVersion version = MustBuild(SpecOf(mapping, "sigmoid(gamma=1)"), rows);
    ASSERT_FALSE(version.certificate.warnings.empty()) << mapping;
    EXPECT_THAT(version.certificate.warnings[0],
                HasSubstr("not known to be positive semidefinite: its Gram matrix on 2 landmarks "
                          "has no negative eigenvalue"));
  }
}

// Each kernel is positive semidefinite, although its text does not show it.
TEST(KernelAlgebraTest, WhatIsNotProvenIsNotCalledIndefinite) {
  const Matrix<double> rows = Rows(300, 3);
  for (const char* kernel : {"2*linear() + -1*linear()", "-1*linear()*(-1*linear())"}) {
    const BuiltVersion f1 = MustBuild(SpecOf("f1(landmarks=50)", kernel), rows);
    EXPECT_THAT(f1.certificate.warnings,
                ElementsAre(HasSubstr("the kernel is not known to be positive semidefinite: ")))
        << kernel;
  }
  EXPECT_TRUE(SpecOf("f2(landmarks=50)", "poly(degree=2, gamma=-1)").Validate().ok());
  EXPECT_FALSE(SpecOf("f2(landmarks=50)", "poly(degree=3, gamma=-1)").Validate().ok());
}

TEST(KernelAlgebraTest, AFormForOtherColumnsIsRefused) {
  const absl::Status status =
      Build(SpecOf("f2(landmarks=20)", "bilinear(diagonal=[1, 2])"), Rows(100, 6)).status();
  EXPECT_EQ(ReasonOf(status), "COLUMNS_MISMATCH");
  EXPECT_EQ(FieldOf(status), "kernel");
}

}  // namespace
}  // namespace phimap::testing
