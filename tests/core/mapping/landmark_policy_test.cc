// Tests the landmark policies on real data and through whole builds.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/landmark/moments.h"
#include "core/landmark/rpcholesky.h"
#include "core/linalg/blas.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/mapping/build/version_build.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/csv_rows.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int kSeeds = 5;

Matrix<double> Standardized(const Matrix<double>& rows) {
  ColumnMoments moments(rows.cols());
  moments.Add(rows.view());
  Matrix<double> out(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.cols(); ++j) {
      out(i, j) = (rows(i, j) - moments.mean(j)) * moments.StandardScale(j);
    }
  }
  return out;
}

// Returns an rbf kernel with γ = 1/p for p columns.
std::string Rbf(int64_t columns) {
  return absl::StrCat("rbf(gamma=", 1.0 / static_cast<double>(columns), ")");
}

// Returns tr(K − K̂)/tr K over the pool, where K̂ is the approximation of K by the rows `landmarks`
// as landmarks.
double PoolResidual(const std::string& kernel, const Matrix<double>& pool,
                    const std::vector<int64_t>& landmarks) {
  const KernelProgram program = KernelProgram::Compile(MustParseKernel(kernel.c_str()));
  const int64_t d = static_cast<int64_t>(landmarks.size());
  Matrix<double> rows(d, pool.cols());
  for (int64_t i = 0; i < d; ++i) std::copy_n(pool.row(landmarks[i]), pool.cols(), rows.row(i));
  Matrix<double> gram(d, d);
  EXPECT_TRUE(KernelGram(program, std::as_const(rows).view(), gram.view(), NeverStop).ok());
  const PivotedCholesky factored =
      FactorPivoted(gram.view(), {.tolerance = 1e-12}, NeverStop).value();
  const int64_t r = factored.rank();
  Matrix<double> pivots(r, pool.cols());
  for (int64_t i = 0; i < r; ++i) {
    std::copy_n(rows.row(factored.pivots[i]), pool.cols(), pivots.row(i));
  }
  const std::vector<double> norms = SquaredNorms(pool.view());
  Matrix<double> block(r, pool.rows());
  KernelBlock(program, std::as_const(pivots).view(), SquaredNorms(std::as_const(pivots).view()),
              pool.view(), norms, block.view());
  SolveLowerTriangle(std::as_const(gram).view().Block(0, 0, r, r), block.view());
  double left = 0;
  double trace = 0;
  for (const double k : KernelDiagonal(program, pool.view(), norms)) trace += k;
  for (int64_t i = 0; i < block.size(); ++i) left += block.data()[i] * block.data()[i];
  return 1 - left / trace;
}

// Residuals of two policies, as means over the seeds.
struct Residuals {
  double uniform = 0;
  double rpcholesky = 0;
};

// Returns the number of rows that no build sees. The error of K is measured on them.
int64_t UnseenCount(const Matrix<double>& data) { return std::min<int64_t>(1000, data.rows() / 5); }

// Returns all rows in random order. The first ones are never seen by builds, the others are the
// stream.
Matrix<double> Shuffled(const Matrix<double>& data, uint64_t seed) {
  const std::vector<int64_t> order =
      FirstOfPermutation(data.rows(), data.rows(), RandomStream(seed + 100, StreamId::kSplit));
  Matrix<double> out(data.rows(), data.cols());
  for (int64_t i = 0; i < data.rows(); ++i) {
    std::copy_n(data.row(order[i]), data.cols(), out.row(i));
  }
  return out;
}

Matrix<double> RowsOf(const Matrix<double>& from, int64_t first, int64_t count) {
  Matrix<double> out(count, from.cols());
  std::copy_n(from.row(first), out.size(), out.data());
  return out;
}

// Returns the residuals where the whole stream is the pool.
Residuals PoolResiduals(const Matrix<double>& data, int64_t landmarks) {
  const std::string kernel = Rbf(data.cols());
  const int64_t unseen = UnseenCount(data);
  Residuals mean;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Matrix<double> pool =
        Standardized(RowsOf(Shuffled(data, seed), unseen, data.rows() - unseen));
    mean.uniform += PoolResidual(kernel, pool,
                                 FirstOfPermutation(pool.rows(), landmarks,
                                                    RandomStream(seed, StreamId::kLandmarks))) /
                    kSeeds;
    const absl::StatusOr<RandomPivots> pivots =
        ChooseRandomPivots({.kernel = KernelProgram::Compile(MustParseKernel(kernel.c_str())),
                            .pool = pool.view(),
                            .landmarks = landmarks,
                            .seed = seed,
                            .threads = [] { return 2; }},
                           NeverStop);
    EXPECT_TRUE(pivots.ok()) << pivots.status();
    // The residual that the policy reports equals that of a separate factorization.
    const double residual = PoolResidual(kernel, pool, pivots->rows);
    EXPECT_NEAR(pivots->residual_trace / pivots->trace, residual, 1e-9);
    mean.rpcholesky += residual / kSeeds;
  }
  return mean;
}

// Returns the square root of the mean of (K(x, y) − F(x)·F(y))² over pairs of rows that no build
// saw.
double KernelRmse(const Matrix<double>& data, int64_t landmarks, const std::string& policy) {
  const int64_t held_out = UnseenCount(data);
  double mean = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Matrix<double> shuffled = Shuffled(data, seed);
    const Matrix<double> unseen = RowsOf(shuffled, 0, held_out);
    const Matrix<double> stream = RowsOf(shuffled, held_out, data.rows() - held_out);
    const BuiltVersion version =
        MustBuild(SpecOf(absl::StrCat("f2(landmarks=", landmarks, ", policy=", policy, ")"),
                         Rbf(data.cols()), /*standardize=*/true, seed),
                  stream);
    const Matrix<double> f = FeaturesFrom(version, unseen);
    Matrix<double> products(held_out, held_out);
    MultiplyTransposed(1, f.view(), f.view(), 0, products.view());
    ColumnMoments moments(data.cols());
    moments.Add(stream.view());
    double squares = 0;
    for (int64_t i = 0; i < held_out; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double distance = 0;
        for (int64_t k = 0; k < data.cols(); ++k) {
          const double difference = (unseen(i, k) - unseen(j, k)) * moments.StandardScale(k);
          distance += difference * difference;
        }
        const double error =
            std::exp(-distance / static_cast<double>(data.cols())) - products(i, j);
        squares += error * error;
      }
    }
    mean += std::sqrt(squares / (0.5 * static_cast<double>(held_out * (held_out - 1)))) / kSeeds;
  }
  return mean;
}

void Report(const char* what, double uniform, double rpcholesky) {
  std::printf("%s: uniform %.4g, rpcholesky %.4g, ratio %.3f\n", what, uniform, rpcholesky,
              rpcholesky / uniform);
}

TEST(LandmarkPolicyTest, RpCholeskyErrsLessThanUniformOnUnseenLetters) {
  const Matrix<double> data = CsvRows("letter.csv");
  const double uniform = KernelRmse(data, 300, "uniform");
  const double rpcholesky = KernelRmse(data, 300, "rpcholesky");
  Report("letter, d = 300, kernel RMSE", uniform, rpcholesky);
  EXPECT_LE(rpcholesky, 0.95 * uniform);
}

TEST(LandmarkPolicyTest, RpCholeskyErrsLessThanUniformOnUnseenMail) {
  const Matrix<double> data = CsvRows("spam.csv");
  const double uniform = KernelRmse(data, 300, "uniform");
  const double rpcholesky = KernelRmse(data, 300, "rpcholesky");
  Report("spam, d = 300, kernel RMSE", uniform, rpcholesky);
  EXPECT_LE(rpcholesky, 0.95 * uniform);
}

TEST(LandmarkPolicyTest, RpCholeskyLeavesLessOfThePoolThanUniform) {
  const struct {
    const char* file;
    int64_t landmarks;
    double at_most;
  } kCases[] = {{"letter.csv", 300, 1}, {"spam.csv", 300, 1}, {"ionosphere.csv", 100, 0.6}};
  for (const auto& c : kCases) {
    const Residuals residuals = PoolResiduals(CsvRows(c.file), c.landmarks);
    Report(c.file, residuals.uniform, residuals.rpcholesky);
    EXPECT_LT(residuals.rpcholesky, c.at_most * residuals.uniform) << c.file;
  }
}

TEST(LandmarkPolicyTest, GivenLandmarksAreTheFirstRowsAndNothingElse) {
  const Matrix<double> sample = NormalRows({.rows = 900, .cols = 4, .seed = 2});
  // The given rows are far from the stream. So any influence of them on the means and deviations
  // would show in the features.
  Matrix<double> given = NormalRows({.rows = 30, .cols = 4, .seed = 3});
  for (int64_t i = 0; i < given.size(); ++i) given.data()[i] += 1000;
  Matrix<double> stream(930, 4);
  std::copy_n(given.data(), given.size(), stream.data());
  std::copy_n(sample.data(), sample.size(), stream.row(30));

  const BuildSpec f1 =
      SpecOf("f1(landmarks=30, policy=given, serving_type=float64)", "rbf(gamma=scale)", true);
  const BuiltVersion version = MustBuild(f1, stream);
  EXPECT_EQ(version.certificate.policy, "given");
  EXPECT_EQ(version.certificate.stream_rows, 930);
  EXPECT_EQ(version.certificate.held_out_rows, 90);
  EXPECT_EQ(version.certificate.pool_rows, 810);
  // Feature j is the similarity to the j-th given row, standardised with the deviations of the
  // sample.
  ColumnMoments moments(4);
  moments.Add(sample.view());
  EXPECT_EQ(version.provenance.kernel_text, "rbf(gamma=0.25)");
  const Matrix<double> f = FeaturesFrom(version, given);
  for (int64_t i = 0; i < 30; ++i) {
    for (int64_t j = 0; j < 30; ++j) {
      double distance = 0;
      for (int64_t k = 0; k < 4; ++k) {
        const double difference = (given(i, k) - given(j, k)) * moments.StandardScale(k);
        distance += difference * difference;
      }
      // Products of numbers near 1 are rounded, because distances are computed relative to the mean
      // of the landmarks.
      EXPECT_NEAR(f(i, j), std::exp(-0.25 * distance), 1e-12) << i << " " << j;
    }
  }
  // The bytes are the same however the stream is cut into blocks.
  for (const int64_t block : {1, 7, 29, 31}) {
    EXPECT_EQ(Build(f1, WireRows(stream), block)->bytes, version.bytes) << block;
  }
}

TEST(LandmarkPolicyTest, OnlyUniformLandmarksCarryTheTheoremsAboutMargins) {
  const Matrix<double> rows = NormalRows({.rows = 100, .cols = 3, .seed = 5});
  const auto certificate = [&](const std::string& policy) {
    return MustBuild(SpecOf("f2(landmarks=9, policy=" + policy + ")", "rbf(gamma=1)"), rows)
        .certificate;
  };
  EXPECT_THAT(certificate("uniform").theorem, HasSubstr("Balcan, Blum, Vempala 2006, Theorem 1"));
  EXPECT_THAT(certificate("rpcholesky").theorem, HasSubstr("not of these"));
  for (const char* policy : {"given", "d2", "kmeans"}) {
    EXPECT_THAT(certificate(policy).theorem, StartsWith("none")) << policy;
    EXPECT_EQ(certificate(policy).theorem_scope, "") << policy;
    EXPECT_EQ(certificate(policy).policy, policy);
  }
}

TEST(LandmarkPolicyTest, GivenLandmarksWantOneRowMore) {
  const Matrix<double> rows = NormalRows({.rows = 11, .cols = 3, .seed = 4});
  const BuildSpec spec = SpecOf("f2(landmarks=11, policy=given)", "rbf(gamma=1)", true);
  EXPECT_THAT(Build(spec, rows).status(), IsError(StatusCode::kFailedPrecondition, "ROWS_TOO_FEW",
                                                  _, HasSubstr("and one row more")));
  EXPECT_TRUE(Build(SpecOf("f2(landmarks=10, policy=given)", "rbf(gamma=1)"), rows).ok());
}

TEST(LandmarkPolicyTest, TheDefaultPoolOfRpCholeskyKeepsItsFactorWithinAGibibyte) {
  for (const int64_t landmarks : {1, 100, 1000, 2048, 8192}) {
    const std::string parameters = absl::StrCat("(landmarks=", landmarks, ", policy=");
    const int64_t uniform = SpecOf("f2" + parameters + "uniform)", "rbf(gamma=1)").PoolRows(16);
    const int64_t pool = SpecOf("f2" + parameters + "rpcholesky)", "rbf(gamma=1)").PoolRows(16);
    EXPECT_LE(pool, uniform);
    EXPECT_GE(pool, landmarks);
    EXPECT_LE(pool * landmarks * 8, int64_t{1} << 30);
    if (landmarks <= 2048) {
      EXPECT_EQ(pool, uniform);
    }
  }
}

TEST(LandmarkPolicyTest, RpCholeskyWantsAKernelKnownToBeDefiniteAlsoUnderF1) {
  EXPECT_THAT(SpecOf("f1(landmarks=5, policy=rpcholesky)", "poly(degree=3, coef0=-1)").Validate(),
              IsError(StatusCode::kInvalidArgument, "KERNEL_NOT_POSITIVE_SEMIDEFINITE"));
  EXPECT_TRUE(SpecOf("f1(landmarks=5)", "poly(degree=3, coef0=-1)").Validate().ok());
}

}  // namespace
}  // namespace phimap::testing
