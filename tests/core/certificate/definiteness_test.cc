#include "core/certificate/definiteness.h"

#include <cmath>

#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

DefinitenessProbe Probe(const char* kernel, const Matrix<double>& rows) {
  UseOneBlasThread();
  const auto probe =
      ProbeDefiniteness(KernelProgram::Compile(MustParseKernel(kernel)), rows.view(), NeverStop);
  EXPECT_TRUE(probe.ok()) << kernel << probe.status();
  return probe.value_or(DefinitenessProbe());
}

TEST(DefinitenessTest, EigenvaluesAreThoseOfTheGramMatrix) {
  // The Gram matrix of the rows (1) and (2) under the kernel x·y is [1 2; 2 4], with the
  // eigenvalues 0 and 5.
  Matrix<double> rows(2, 1);
  rows(0, 0) = 1;
  rows(1, 0) = 2;
  const DefinitenessProbe probe = Probe("linear()", rows);
  EXPECT_EQ(probe.rows, 2);
  EXPECT_NEAR(probe.smallest, 0, 1e-15);
  EXPECT_NEAR(probe.largest, 5, 1e-14);
  EXPECT_FALSE(probe.indefinite());
  EXPECT_NEAR(Probe("-2*linear()", rows).smallest, -10, 1e-14);
}

TEST(DefinitenessTest, SingularMatricesAreNotTakenForIndefiniteOnes) {
  const Matrix<double> rows = NormalRows({.rows = 300, .cols = 3, .seed = 1});
  for (const char* kernel :
       {"linear()", "rbf(gamma=1e-6)", "poly(degree=5, coef0=1)", "laplacian(gamma=0.001)",
        "cosine()", "weight(norm_power=4)", "exp(linear())", "1e30*linear()", "1e-30*linear()"}) {
    const DefinitenessProbe probe = Probe(kernel, rows);
    EXPECT_EQ(probe.rows, kMaxProbeRows);
    EXPECT_FALSE(probe.indefinite()) << kernel << " " << probe.smallest << " " << probe.round_off;
    EXPECT_NE(probe.ToText().find("no negative eigenvalue"), std::string::npos);
  }
}

TEST(DefinitenessTest, OneNegativeEigenvalueIsTheVerdict) {
  const Matrix<double> rows = NormalRows({.rows = 300, .cols = 3, .seed = 2});
  for (const char* kernel : {"sigmoid(gamma=1, coef0=-1)", "sigmoid(gamma=-1)",
                             "poly(degree=2, coef0=-1)", "rbf(gamma=1) + -1.01*laplacian(gamma=2)",
                             "bilinear(matrix=[1, 2, 0; 2, 1, 0; 0, 0, 1])"}) {
    const DefinitenessProbe probe = Probe(kernel, rows);
    EXPECT_TRUE(probe.indefinite()) << kernel << " " << probe.smallest;
    EXPECT_NE(probe.ToText().find("on 256 landmarks has the eigenvalue -"), std::string::npos)
        << probe.ToText();
  }
}

TEST(DefinitenessTest, KernelValuesThatAreNotNumbersAreRefused) {
  Matrix<double> rows = NormalRows({.rows = 10, .cols = 2, .seed = 3});
  rows(4, 0) = rows(4, 1) = 0;
  EXPECT_THAT(ProbeDefiniteness(
                  KernelProgram::Compile(MustParseKernel("sigmoid(gamma=1)*normalize(linear())")),
                  rows.view(), NeverStop)
                  .status(),
              IsError(StatusCode::kInvalidArgument, "VALUE_NOT_FINITE", "kernel"));
}

}  // namespace
}  // namespace phimap::testing
