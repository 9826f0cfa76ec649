// Tests the policies d2 and kmeans, which choose landmarks that are far from each other.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/landmark/landmark_policy.h"
#include "core/landmark/moments.h"
#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/csv_rows.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

class SpreadPolicyTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string F2(int64_t landmarks) {
    return absl::StrCat("f2(landmarks=", landmarks, ", policy=", GetParam(), ")");
  }
};

// There are ten points with a hundred copies of each. Ten landmarks find all of the points, and
// more landmarks than points do no harm.
TEST_P(SpreadPolicyTest, CopiesAreFoundOnce) {
  const Matrix<double> points = NormalRows({.rows = 10, .cols = 4, .seed = 3});
  Matrix<double> rows(1000, 4);
  for (int64_t i = 0; i < rows.rows(); ++i) std::copy_n(points.row(i % 10), 4, rows.row(i));
  for (const int64_t landmarks : {10, 30}) {
    const BuiltVersion version =
        MustBuild(SpecOf(absl::StrCat("f2(landmarks=", landmarks, ", policy=", GetParam(),
                                      ", serving_type=float64)"),
                         "rbf(gamma=1)"),
                  rows);
    EXPECT_EQ(version.certificate.rank, 10) << landmarks;
    EXPECT_LT(version.certificate.residual_share->quantile_95, 1e-9);
  }
}

TEST_P(SpreadPolicyTest, ColumnsAreScaledBeforeDistancesAreTaken) {
  Matrix<double> rows = NormalRows({.rows = 2000, .cols = 3, .seed = 7});
  const auto residual = [&] {
    return *MustBuild(SpecOf(F2(30), "rbf(gamma=0.3)", true), rows)
                .certificate.held_out_trace_residual;
  };
  const double before = residual();
  for (int64_t i = 0; i < rows.rows(); ++i) rows(i, 0) = 1e6 * rows(i, 0) + 5e6;
  EXPECT_NEAR(residual(), before, 1e-3 * before);
}

TEST_P(SpreadPolicyTest, StringsAndRemoteKernelsAreRefused) {
  const absl::Status strings = SpecOf(F2(5), "spectrum(n=3)").Validate();
  EXPECT_EQ(FieldOf(strings), "policy");
  EXPECT_THAT(std::string(strings.message()), HasSubstr("rows of numbers"));
  BuildSpec remote = SpecOf(F2(5), "rbf(gamma=1)");
  remote.remote = *RemoteKernel::Parse("precomputed()");
  EXPECT_EQ(FieldOf(remote.Validate()), "policy");
}

// Centres equal no row, so delta() is 0 between every row and every centre.
TEST(KMeansPolicyTest, KernelsThatCompareForEqualityAreRefused) {
  const absl::Status refused =
      SpecOf("f1(landmarks=5, policy=kmeans)", "rbf(gamma=1)*delta(columns=2)").Validate();
  EXPECT_EQ(FieldOf(refused), "policy");
  EXPECT_EQ(ReasonOf(refused), "KERNEL_NOT_APPLICABLE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("equal no row"));
  EXPECT_TRUE(SpecOf("f1(landmarks=5, policy=d2)", "delta()").Validate().ok());
}

// Returns the square root of the mean of (K(x, y) − F(x)·F(y))² over pairs of rows that no build
// saw, for rbf with γ = 1/p on standardised columns, as a mean over three seeds.
double UnseenRmse(const Matrix<double>& data, const std::string& policy) {
  const int64_t unseen_count = std::min<int64_t>(1000, data.rows() / 5);
  const int64_t p = data.cols();
  double mean = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<int64_t> order =
        FirstOfPermutation(data.rows(), data.rows(), RandomStream(seed, StreamId::kLabOrder));
    Matrix<double> unseen(unseen_count, p);
    Matrix<double> stream(data.rows() - unseen_count, p);
    for (int64_t i = 0; i < data.rows(); ++i) {
      std::copy_n(data.row(order[i]), p,
                  i < unseen_count ? unseen.row(i) : stream.row(i - unseen_count));
    }
    const BuiltVersion version =
        MustBuild(SpecOf(absl::StrCat("f2(landmarks=300, policy=", policy, ")"),
                         absl::StrCat("rbf(gamma=", 1.0 / static_cast<double>(p), ")"),
                         /*standardize=*/true, seed),
                  stream);
    const Matrix<double> f = FeaturesFrom(version, unseen);
    ColumnMoments moments(p);
    moments.Add(stream.view());
    double squares = 0;
    for (int64_t i = 0; i < unseen_count; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double distance = 0;
        double product = 0;
        for (int64_t k = 0; k < p; ++k) {
          const double difference = (unseen(i, k) - unseen(j, k)) * moments.StandardScale(k);
          distance += difference * difference;
        }
        for (int64_t k = 0; k < f.cols(); ++k) product += f(i, k) * f(j, k);
        const double error = std::exp(-distance / static_cast<double>(p)) - product;
        squares += error * error;
      }
    }
    mean += std::sqrt(2 * squares / static_cast<double>(unseen_count * (unseen_count - 1))) / 3;
  }
  return mean;
}

// Returns the largest share of the uniform policy's error that docs/maths.md claims for `policy`.
double ClaimedShare(const std::string& policy) { return policy == "d2" ? 0.85 : 0.65; }

TEST_P(SpreadPolicyTest, TheKernelIsOffByLessThanOnUniformLandmarks) {
  for (const char* file : {"letter.csv", "spam.csv"}) {
    const Matrix<double> data = CsvRows(file);
    const double uniform = UnseenRmse(data, "uniform");
    const double spread = UnseenRmse(data, GetParam());
    std::printf("%s, d = 300, kernel RMSE: uniform %.4g, %s %.4g, ratio %.3f\n", file, uniform,
                GetParam(), spread, spread / uniform);
    EXPECT_LE(spread, ClaimedShare(GetParam()) * uniform) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SpreadPolicyTest, ::testing::Values("d2", "kmeans"));

}  // namespace
}  // namespace phimap::testing
