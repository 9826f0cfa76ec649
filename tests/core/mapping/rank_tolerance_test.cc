// Tests how F2 decides which landmarks to keep. It compares the residual of each landmark with the
// landmark's own K(x, x), so the scale of the other landmarks does not matter. Also tests F2 of
// kernels whose values have larger errors than rounding.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/csv_rows.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Half of the rows are (1000, 0), the others (0, y) with y = ±1, so cosines between rows are 0 or
// ±1.
Matrix<double> RowsOfTwoScales(int64_t count) {
  Matrix<double> rows(count, 2);
  for (int64_t i = 0; i < count; ++i) {
    if (i % 2 == 0) {
      rows(i, 0) = 1000;
    } else {
      rows(i, 1) = i % 4 == 1 ? 1 : -1;
    }
  }
  return rows;
}

TEST(RankToleranceTest, RowsOfSmallLengthAreNotDroppedBesideLongOnes) {
  const Matrix<double> rows = RowsOfTwoScales(4000);
  for (const char* mapping :
       {"f2(landmarks=400)", "f2(landmarks=400, serving_type=float64)",
        "f2(landmarks=400, policy=rpcholesky)", "f3(landmarks=400, dimensions=2)"}) {
    SCOPED_TRACE(mapping);
    const BuiltVersion built = MustBuild(SpecOf(mapping, "linear()"), rows);
    EXPECT_EQ(built.certificate.rank, 2);
    ASSERT_TRUE(built.certificate.residual_share.has_value());
    // Features are measured as they are served, and float32 has an error of 1e-7 of a row's length.
    EXPECT_LE(built.certificate.residual_share->quantile_95, 1e-6);
    if (std::string(mapping).starts_with("f3")) continue;
    const Matrix<double> f = FeaturesFrom(built, rows);
    for (int64_t i = 0; i < 8; ++i) {
      double norm = 0;
      for (int64_t j = 0; j < f.cols(); ++j) norm += f(i, j) * f(i, j);
      const double self = rows(i, 0) * rows(i, 0) + rows(i, 1) * rows(i, 1);
      EXPECT_NEAR(norm, self, 1e-6 * self) << i;
    }
  }
}

// Tests that the certificate shows rows whose residual ρ(x) is large compared with their own K(x,
// x). Quantiles of ρ(x)/K(x, x) show these rows, but a ratio of traces does not. The rows with a
// large residual are the short ones, because no landmark is a short row.
TEST(RankToleranceTest, QuantilesOfResidualsShowTheRowsThatARatioOfTracesHides) {
  Matrix<double> rows = RowsOfTwoScales(4000);
  // The landmarks are the first rows of the stream, all of them long.
  for (int64_t i = 0; i < 20; ++i) {
    rows(i, 0) = 1000;
    rows(i, 1) = 0;
  }
  const BuiltVersion built = MustBuild(SpecOf("f2(landmarks=20, policy=given)", "linear()"), rows);
  EXPECT_EQ(built.certificate.rank, 1);
  EXPECT_LE(*built.certificate.held_out_trace_residual, 1e-5);
  ASSERT_TRUE(built.certificate.residual_share.has_value());
  const ResidualShare& share = *built.certificate.residual_share;
  EXPECT_EQ(share.rows + share.zero_rows, built.certificate.held_out_rows);
  EXPECT_EQ(share.zero_rows, 0);
  EXPECT_NEAR(share.quantile_95, 1, 1e-12);
}

TEST(RankToleranceTest, PolynomialOnSpamKeepsMostLandmarksAndItsAllowanceIsSmall) {
  const Matrix<double> rows = CsvRows("spam.csv");
  const BuiltVersion built =
      MustBuild(SpecOf("f2(landmarks=500, serving_type=float32)",
                       "poly(degree=4, gamma=0.0175, coef0=1)", /*standardize=*/true),
                rows);
  EXPECT_GE(*built.certificate.rank, 400);
  const Artifact artifact = DecodeArtifact(built.bytes).value();
  const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
  ASSERT_TRUE(residual.has_value());
  // Allowances do not depend on the features.
  const int64_t n = rows.rows();
  std::vector<double> self(static_cast<size_t>(n));
  std::vector<double> rounding(static_cast<size_t>(n));
  residual->Lengths(WireRows(rows), self.data(), rounding.data());
  const Matrix<float> features(n, built.output_columns);
  std::vector<double> rho(static_cast<size_t>(n));
  std::vector<double> allowance(static_cast<size_t>(n));
  residual->Compute(WireRows(rows), features.data(), rho.data(), allowance.data());
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, allowance[i] / self[i]);
  std::printf("spam, poly: rank %ld, allowance at most %.4f of K(x, x)\n",
              static_cast<long>(*built.certificate.rank), largest);
  EXPECT_LE(largest, 0.02);
  EXPECT_GE(largest, 1e-4);
}

// The kernel is a bilinear form with A = V·Vᵀ. Half of the rows lie in the null space of A up to
// rounding, which gives them a K(x, x) of about 1e-17 and arbitrary cosines.
TEST(RankToleranceTest, RowsInTheNullSpaceOfAFormCountAsZero) {
  constexpr int64_t kColumns = 6;
  for (const int64_t rank : {1, 2}) {
    SCOPED_TRACE(rank);
    const Matrix<double> v = NormalRows({.rows = rank, .cols = kColumns, .seed = 3});
    std::string matrix;
    for (int64_t i = 0; i < kColumns; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        double a = 0;
        for (int64_t k = 0; k < rank; ++k) a += v(k, i) * v(k, j);
        char number[32];
        std::snprintf(number, sizeof number, "%s%.17g", j == 0 ? "" : ", ", a);
        matrix += number;
      }
      matrix += i + 1 < kColumns ? "; " : "";
    }
    Matrix<double> rows = NormalRows({.rows = 2000, .cols = kColumns, .seed = 4});
    // From every other row, its part along each v is subtracted. First, each v is made orthogonal
    // to those before it.
    Matrix<double> basis = v.Clone();
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t l = 0; l < k; ++l) {
        double dot = 0;
        for (int64_t j = 0; j < kColumns; ++j) dot += basis(k, j) * basis(l, j);
        for (int64_t j = 0; j < kColumns; ++j) basis(k, j) -= dot * basis(l, j);
      }
      double norm = 0;
      for (int64_t j = 0; j < kColumns; ++j) norm += basis(k, j) * basis(k, j);
      for (int64_t j = 0; j < kColumns; ++j) basis(k, j) /= std::sqrt(norm);
    }
    for (int64_t i = 0; i < rows.rows(); i += 2) {
      for (int64_t k = 0; k < rank; ++k) {
        double dot = 0;
        for (int64_t j = 0; j < kColumns; ++j) dot += rows(i, j) * basis(k, j);
        for (int64_t j = 0; j < kColumns; ++j) rows(i, j) -= dot * basis(k, j);
      }
    }
    for (const char* type : {"float32", "float64"}) {
      const BuiltVersion built =
          MustBuild(SpecOf(std::string("f2(landmarks=200, serving_type=") + type + ")",
                           "bilinear(matrix=[" + matrix + "])"),
                    rows);
      EXPECT_EQ(built.certificate.rank, rank);
      EXPECT_NEAR(static_cast<double>(*built.certificate.zero_landmarks), 100, 30);
      ASSERT_TRUE(built.certificate.residual_share.has_value());
      const ResidualShare& share = *built.certificate.residual_share;
      EXPECT_GT(share.zero_rows, share.rows / 2);
      EXPECT_LE(share.quantile_95, 1e-5);
    }
  }
}

// Returns ten clusters of deviation .05 with centres in [−1000, 1000]².
Matrix<double> FarClusters(int64_t count) {
  const Matrix<double> centres = UniformRows({.rows = 10, .cols = 2, .seed = 21});
  Matrix<double> rows = NormalRows({.rows = count, .cols = 2, .seed = 22});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < 2; ++j) rows(i, j) = 1000 * centres(i % 10, j) + 0.05 * rows(i, j);
  }
  return rows;
}

// For far clusters, kernel values have errors of 4e-10. Elimination turns these into −1e-8, which
// does not prove that the kernel is indefinite.
TEST(RankToleranceTest, KernelOfFarClustersIsBuiltInFloat64) {
  const Matrix<double> rows = FarClusters(4000);
  for (const char* mapping : {"f2(landmarks=500)", "f2(landmarks=500, serving_type=float64)",
                              "f2(landmarks=500, policy=rpcholesky)"}) {
    SCOPED_TRACE(mapping);
    const BuiltVersion built = Build(SpecOf(mapping, "rbf(gamma=1)"), WireRows(rows)).value();
    EXPECT_EQ(built.serving_type, FloatType::kFloat64);
    ASSERT_TRUE(built.certificate.kernel_error.has_value());
    ASSERT_TRUE(built.certificate.kernel_error.has_value());
    EXPECT_LE(built.certificate.kernel_error->max, 1e-4);
    // Features agree with kernel values that the test computes itself.
    const Matrix<double> some = NormalRows({.rows = 40, .cols = 2, .seed = 23});
    Matrix<double> x(40, 2);
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t j = 0; j < 2; ++j) x(i, j) = rows(i, j) + 0.02 * some(i, j);
    }
    const Matrix<double> f = FeaturesFrom(built, x);
    const Matrix<double> k = NaiveKernelMatrix(MustParseKernel("rbf(gamma=1)"), x, x);
    EXPECT_LE(LargestDifference(NaiveGram(f, f), k), 1e-4);
  }
}

TEST(RankToleranceTest, Float32IsRefusedForThemWithTheErrorThatItWouldHave) {
  const absl::StatusOr<BuiltVersion> built =
      Build(SpecOf("f2(landmarks=500, serving_type=float32)", "rbf(gamma=1)"),
            WireRows(FarClusters(4000)));
  EXPECT_THAT(built.status(), IsError(StatusCode::kFailedPrecondition, "SERVING_PRECISION_TOO_LOW",
                                      _, HasSubstr("float32 features err by up to ")));
  const double error = std::stod(DetailOf(built.status())->metadata.at("actual"));
  EXPECT_GT(error, 1e-3);
}

// Half of the rows have a length of 1e-8 and a K(x, x) of 1e-48, which float32 cannot represent. A
// version whose features would vanish in float32 is served in float64, because otherwise the
// theorem would not hold for these rows.
TEST(RankToleranceTest, RowsThatFloat32WouldLoseAreServedInFloat64) {
  Matrix<double> rows(2000, 2);
  for (int64_t i = 0; i < 2000; ++i) {
    if (i % 2 == 0) {
      rows(i, 0) = 1;
    } else {
      rows(i, 1) = i % 4 == 1 ? 1e-8 : -1e-8;
    }
  }
  const char* kKernel = "poly(degree=3, gamma=1, coef0=0)";
  const BuiltVersion built = MustBuild(SpecOf("f2(landmarks=300)", kKernel), rows);
  EXPECT_EQ(built.serving_type, FloatType::kFloat64);
  EXPECT_EQ(built.certificate.rank, 2);
  const Matrix<double> f = FeaturesFrom(built, rows);
  for (int64_t i = 0; i < 8; ++i) {
    double norm = 0;
    for (int64_t j = 0; j < f.cols(); ++j) norm += f(i, j) * f(i, j);
    const double self = i % 2 == 0 ? 1 : 1e-48;
    EXPECT_NEAR(norm, self, 1e-9 * self) << i;
  }
  const absl::Status status =
      Build(SpecOf("f2(landmarks=300, serving_type=float32)", kKernel), WireRows(rows)).status();
  EXPECT_EQ(ReasonOf(status), "SERVING_PRECISION_TOO_LOW");
  // Versions of rows that float32 rounds to 0 are served in float64 too.
  for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] *= 1e-60;
  EXPECT_EQ(MustBuild(SpecOf("f2(landmarks=300)", "linear()"), rows).serving_type,
            FloatType::kFloat64);
}

// Numbers under 2⁻¹⁰²² have fewer digits than other numbers. The lost digits exceed every relative
// bound on rounding.
TEST(RankToleranceTest, DigitsThatUnderflowTakesAreNoDirections) {
  const Matrix<double> normal = NormalRows({.rows = 2000, .cols = 3, .seed = 26});
  for (const double scale : {1e-100, 1e-155, 1e-160}) {
    SCOPED_TRACE(scale);
    Matrix<double> rows = normal.Clone();
    for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] *= scale;
    const BuiltVersion built =
        Build(SpecOf("f2(landmarks=300, serving_type=float64)", "linear()"), WireRows(rows))
            .value();
    EXPECT_LE(built.certificate.rank, 3);
    if (scale == 1e-100) {
      EXPECT_EQ(built.certificate.rank, 3);  // at this scale, nothing is too small
    }
    EXPECT_THAT(built.certificate.warnings, IsEmpty());
  }
}

// One row that is far from all others must not make the kernel values of the others less accurate.
TEST(RankToleranceTest, OneFarRowDoesNotSpoilTheOthers) {
  Matrix<double> rows = NormalRows({.rows = 2000, .cols = 2, .seed = 27});
  const auto build = [&] {
    return Build(SpecOf("f2(landmarks=360, policy=given, serving_type=float64)", "rbf(gamma=1)"),
                 WireRows(rows));
  };
  const BuiltVersion near = build().value();
  ASSERT_TRUE(near.certificate.kernel_error.has_value());
  for (const double far : {1e4, 1e6}) {
    SCOPED_TRACE(far);
    rows(17, 0) = far;
    rows(17, 1) = 0;
    const BuiltVersion built = build().value();
    // Distances are computed relative to the mean. The far row moves the mean by a 360th of its
    // distance.
    const double off = far / 360;
    EXPECT_LE(built.certificate.tolerance, 1e-13 + 64 * off * off * 0x1p-53);
    EXPECT_LE(built.certificate.kernel_error->max, 10 * near.certificate.kernel_error->max + 1e-4);
  }
  // Kernel values are exactly 0 or 1 and have no error, however sharp the kernel is.
  EXPECT_TRUE(Build(SpecOf("f2(landmarks=360, policy=given)", "rbf(gamma=1e14)"),
                    WireRows(NormalRows({.rows = 400, .cols = 2, .seed = 28})))
                  .ok());
}

// Which distribution the theorem is about depends on where kernel and scaling came from.
TEST(RankToleranceTest, TheTheoremSaysOfWhichDistributionItSpeaks) {
  const Matrix<double> rows = NormalRows({.rows = 900, .cols = 3, .seed = 25});
  struct ScopeCase {
    const char* mapping;
    const char* kernel;
    bool standardize;
    const char* says;
    const char* does_not_say;
  };
  for (const ScopeCase& c : {
           ScopeCase{"f2(landmarks=40)", "rbf(gamma=0.5)", false,
                     "the distribution that the stream's rows were drawn from", "empirical"},
           ScopeCase{
               "f2(landmarks=40)", "rbf(gamma=scale)", false,
               "the stream's own empirical distribution and the kernel as resolved: gamma was",
               "drawn from"},
           ScopeCase{"f1(landmarks=40)", "rbf(gamma=0.5)", true,
                     "empirical distribution and the kernel as resolved: scaling was", "were cut"},
           ScopeCase{"f3(landmarks=40, dimensions=8)", "rbf(gamma=median)", true,
                     "gamma and scaling were taken from the same rows", "drawn from"},
           ScopeCase{"f2(landmarks=40, policy=rpcholesky)", "rbf(gamma=0.5)", false,
                     "rows of this stream that the landmarks were chosen from", "empirical"},
           ScopeCase{"f2(landmarks=40)", "poly(degree=2, coef0=1)", false,
                     "a share of about 2.38e-06 of each landmark's own K(x, x), by which 30 of 40 "
                     "were cut",
                     "nothing but rounding"},
           ScopeCase{"kpca(landmarks=40, dimensions=4)", "rbf(gamma=0.5)", false,
                     "the landmarks themselves, not rows to come", "cut"},
       }) {
    SCOPED_TRACE(c.mapping);
    const BuiltVersion built = MustBuild(SpecOf(c.mapping, c.kernel, c.standardize), rows);
    EXPECT_THAT(built.certificate.theorem_scope, HasSubstr(c.says));
    EXPECT_THAT(built.certificate.theorem_scope, Not(HasSubstr(c.does_not_say)));
  }
  EXPECT_EQ(MustBuild(SpecOf("f2(landmarks=40, policy=given)", "rbf(gamma=0.5)"), rows)
                .certificate.theorem_scope,
            "");
}

TEST(RankToleranceTest, KernelOfWhichFloat64LeavesNothingIsRefusedInWords) {
  // Two clusters of deviation 1, which are 2e9 apart.
  Matrix<double> rows = NormalRows({.rows = 600, .cols = 2, .seed = 24});
  for (int64_t i = 0; i < rows.rows(); ++i) rows(i, 0) += i % 2 == 0 ? 1e9 : -1e9;
  EXPECT_THAT(
      Build(SpecOf("f2(landmarks=100, serving_type=float64)", "rbf(gamma=1)"), WireRows(rows))
          .status(),
      IsError(StatusCode::kFailedPrecondition, "KERNEL_PRECISION_TOO_LOW"));
}

}  // namespace
}  // namespace phimap::testing
