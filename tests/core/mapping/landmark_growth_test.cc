// Tests landmarks=auto(residual=…), which finds the number of landmarks by the residual that they
// leave.
#include "core/landmark/landmark_growth.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/landmark/count_rule.h"
#include "core/linalg/blas.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/build/version_build.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

using End = LandmarkGrowth::End;

KernelProgram ProgramOf(const std::string& kernel) {
  return KernelProgram::Compile(MustParseKernel(kernel.c_str()));
}

Matrix<double> FirstRows(const Matrix<double>& from, int64_t count) {
  return Converted<double, double>(from.view().Rows(0, count));
}

// Returns ρ(x)/K(x, x) of `rows` in ascending order, computed with a single pivoted factorization.
std::vector<double> SharesByOneFactor(const KernelProgram& kernel, const Matrix<double>& landmarks,
                                      const Matrix<double>& rows) {
  Matrix<double> gram(landmarks.rows(), landmarks.rows());
  EXPECT_TRUE(KernelGram(kernel, landmarks.view(), gram.view(), NeverStop).ok());
  std::vector<double> roots;
  for (int64_t i = 0; i < gram.rows(); ++i) roots.push_back(std::sqrt(gram(i, i)));
  for (int64_t i = 0; i < gram.rows(); ++i) {
    for (int64_t j = 0; j <= i; ++j) gram(i, j) /= roots[i] * roots[j];
  }
  const PivotedCholesky factored =
      FactorPivoted(gram.view(), {.tolerance = 1e-11}, NeverStop).value();
  const int64_t r = factored.rank();
  Matrix<double> pivots(r, landmarks.cols());
  for (int64_t i = 0; i < r; ++i) {
    std::copy_n(landmarks.row(factored.pivots[i]), landmarks.cols(), pivots.row(i));
  }
  const std::vector<double> norms = SquaredNorms(rows.view());
  Matrix<double> block(r, rows.rows());
  KernelBlock(kernel, std::as_const(pivots).view(), SquaredNorms(std::as_const(pivots).view()),
              rows.view(), norms, block.view());
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j < rows.rows(); ++j) block(i, j) /= roots[factored.pivots[i]];
  }
  SolveLowerTriangle(std::as_const(gram).view().Block(0, 0, r, r), block.view());
  const std::vector<double> self = KernelDiagonal(kernel, rows.view(), norms);
  std::vector<double> shares;
  for (int64_t j = 0; j < rows.rows(); ++j) {
    double left = self[j];
    for (int64_t i = 0; i < r; ++i) left -= block(i, j) * block(i, j);
    shares.push_back(left / self[j]);
  }
  std::sort(shares.begin(), shares.end());
  return shares;
}

double Quantile(const std::vector<double>& rising) {
  return rising[static_cast<size_t>(std::ceil(0.95 * static_cast<double>(rising.size()))) - 1];
}

// Returns the smallest k with P[Bin(n, .95) < k] >= .95; n + 1 if there is none. The probabilities
// are summed from the top.
int64_t RankBySums(int64_t n) {
  double above = 0;  // P[Bin(n, .95) >= k]
  double term = std::pow(0.95, n);
  int64_t k = n + 1;
  while (k > 1 && above + term <= 0.05) {
    above += term;
    --k;
    term *= static_cast<double>(k) / static_cast<double>(n - k + 1) * (0.05 / 0.95);
  }
  return k;
}

double BoundByOneFactor(const KernelProgram& kernel, const Matrix<double>& landmarks,
                        const Matrix<double>& rows) {
  return SharesByOneFactor(kernel, landmarks,
                           rows)[static_cast<size_t>(RankBySums(rows.rows()) - 1)];
}

TEST(LandmarkGrowthTest, TextHasOneForm) {
  for (const auto& [text, canonical] : {
           std::pair<std::string, std::string>{
               "f2(landmarks=auto(residual=1e-2))",
               "f2(landmarks=auto(residual=0.01, most=2048), policy=uniform)"},
           {"f3(dimensions=7, landmarks=auto(most=300, residual=.25), pool_rows=200)",
            "f3(landmarks=auto(residual=0.25, most=300), dimensions=7, projection=gaussian, "
            "policy=uniform, pool_rows=200)"},
       }) {
    const MappingSpec spec = MappingSpec::Parse(text).value();
    EXPECT_EQ(spec.ToText(), canonical);
    EXPECT_EQ(MappingSpec::Parse(canonical)->ToText(), canonical);
  }
}

TEST(LandmarkGrowthTest, MalformedTextNamesTheColumn) {
  struct Case {
    std::string text;
    int column;
    std::string says;
  };
  for (const Case& c : {
           Case{"f2(landmarks=auto)", 14, "or auto(residual=…); got 'auto'"},
           Case{"f2(landmarks=auto())", 14,
                "auto needs the parameter 'residual', a number > 0, at most 0.5"},
           Case{"f2(landmarks=auto(residual=0))", 28,
                "residual of auto is > 0, at most 0.5, got 0"},
           Case{"f2(landmarks=auto(residual=1))", 28, "got 1"},
           Case{"f2(landmarks=auto(residual=.1, most=8193))", 37,
                "most is an integer from 1 to 8192"},
           Case{"f2(landmarks=auto(residual=.1, least=5))", 32, "it has residual, most"},
           Case{"f3(landmarks=9, dimensions=auto(residual=.1))", 28, "got the call auto(…)"},
       }) {
    const absl::Status status = MappingSpec::Parse(c.text).status();
    ASSERT_TRUE(DetailOf(status).has_value()) << c.text << status;
    EXPECT_EQ(DetailOf(status)->metadata.at("column"), absl::StrCat(c.column)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says)) << c.text;
  }
}

TEST(LandmarkGrowthTest, StopsAtTheFirstBlockWhoseBoundIsUnderTheResidual) {
  UseOneBlasThread();
  const Matrix<double> candidates = UniformRows({.rows = 600, .cols = 3, .seed = 1});
  const Matrix<double> deciding = UniformRows({.rows = 700, .cols = 3, .seed = 2});
  for (const char* kernel : {"rbf(gamma=0.7)", "laplacian(gamma=0.1)", "poly(degree=6, coef0=2)",
                             "rbf(gamma=2) + 3*linear()"}) {
    for (const double residual : {0.1, 0.01, 0.002}) {
      SCOPED_TRACE(absl::StrCat(kernel, " ", residual));
      const KernelProgram program = ProgramOf(kernel);
      const LandmarkGrowth growth = GrowLandmarks({.kernel = program,
                                                   .candidates = candidates.view(),
                                                   .deciding = deciding.view(),
                                                   .goal = residual,
                                                   .unit = 0x1p-53},
                                                  NeverStop)
                                        .value();
      EXPECT_EQ(growth.deciding_rows, 700);
      const int64_t n = growth.landmarks;
      const double bound = BoundByOneFactor(program, FirstRows(candidates, n), deciding);
      // The two factorizations differ by what their tolerances leave out, 1e-11 for each landmark.
      EXPECT_NEAR(growth.share, bound, 1e-7);
      EXPECT_EQ(growth.rank, RankBySums(700));
      if (growth.end == End::kReached) {
        EXPECT_EQ(n % kGrowthBlock, 0);
        EXPECT_LE(growth.share, residual);
      } else {
        EXPECT_EQ(n, 600);
        EXPECT_GT(growth.share, residual);
      }
      if (n > kGrowthBlock) {
        EXPECT_GT(BoundByOneFactor(program, FirstRows(candidates, n - kGrowthBlock), deciding),
                  residual);
      }
    }
  }
}

TEST(LandmarkGrowthTest, TheRankIsTheLeastThatHolds) {
  for (const int64_t n : {1, 20, 58, 59, 60, 200, 999, 1000}) {
    EXPECT_EQ(ResidualRank(n), RankBySums(n)) << n;
  }
  EXPECT_EQ(ResidualRank(58), 59);  // not even the largest of them holds: .95⁵⁸ > .05
  EXPECT_EQ(ResidualRank(59), 59);
  EXPECT_EQ(ResidualRank(1000), 962);
}

// The residual is set just below the true 95 % quantile that 96 landmarks leave, so that a search
// that stops at 96 or before is wrong. Of 400 searches, each with its own 300 deciding rows, at
// most 5 % may be, with four standard errors for the number of searches. A search by the deciding
// rows' own 95 % quantile, without any confidence, is wrong about half the time.
TEST(LandmarkGrowthTest, StopsTooEarlyInAtMostFivePercentOfTheSearches) {
  UseOneBlasThread();
  constexpr int kSearches = 400;
  constexpr int64_t kEnough = 128;
  const KernelProgram program = ProgramOf("rbf(gamma=0.7)");
  const Matrix<double> candidates = UniformRows({.rows = 160, .cols = 3, .seed = 1});
  const Matrix<double> before = FirstRows(candidates, kEnough - kGrowthBlock);
  const double truth = Quantile(
      SharesByOneFactor(program, before, UniformRows({.rows = 100'000, .cols = 3, .seed = 2})));
  int early = 0;
  int early_without_confidence = 0;
  for (int search = 0; search < kSearches; ++search) {
    const Matrix<double> deciding =
        UniformRows({.rows = 300, .cols = 3, .seed = static_cast<uint64_t>(search) + 3});
    const LandmarkGrowth growth = GrowLandmarks({.kernel = program,
                                                 .candidates = candidates.view(),
                                                 .deciding = deciding.view(),
                                                 .goal = 0.999 * truth,
                                                 .unit = 0x1p-53},
                                                NeverStop)
                                      .value();
    if (growth.end == End::kReached && growth.landmarks < kEnough) ++early;
    if (Quantile(SharesByOneFactor(program, before, deciding)) <= 0.999 * truth) {
      ++early_without_confidence;
    }
  }
  const int limit = static_cast<int>(0.05 * kSearches + 4 * std::sqrt(0.0475 * kSearches));
  EXPECT_LE(early, limit);
  EXPECT_GT(early, 0);  // the bound is not so wide that no search ever stops early
  EXPECT_GT(early_without_confidence, 4 * limit);
}

TEST(LandmarkGrowthTest, CandidatesThatRepeatOthersOrAreZeroAddNothing) {
  UseOneBlasThread();
  const Matrix<double> some = UniformRows({.rows = 50, .cols = 3, .seed = 1});
  Matrix<double> candidates(200, 3);
  for (int64_t i = 0; i < 150; ++i) std::copy_n(some.row(i % 50), 3, candidates.row(i));
  const Matrix<double> deciding = UniformRows({.rows = 300, .cols = 3, .seed = 2});
  const KernelProgram program = ProgramOf("poly(degree=9)");
  const LandmarkGrowth growth = GrowLandmarks({.kernel = program,
                                               .candidates = candidates.view(),
                                               .deciding = deciding.view(),
                                               .goal = 1e-15,
                                               .unit = 0x1p-53},
                                              NeverStop)
                                    .value();
  EXPECT_EQ(growth.end, End::kCandidates);
  EXPECT_EQ(growth.landmarks, 200);
  EXPECT_NEAR(growth.share, BoundByOneFactor(program, some, deciding), 1e-6);
}

TEST(LandmarkGrowthTest, EndsWhereNothingIsLeftToAdd) {
  UseOneBlasThread();
  const Matrix<double> rows = UniformRows({.rows = 4000, .cols = 2, .seed = 1});
  const BuiltVersion version = MustBuild(
      SpecOf("f2(landmarks=auto(residual=1e-12), serving_type=float32)", "rbf(gamma=0.001)"), rows);
  EXPECT_LT(version.certificate.landmarks, 1000);
  EXPECT_THAT(version.certificate.warnings, Contains(HasSubstr("no candidate adds to the span")));
}

// The build decides on 1,000 rows, of which at most 5 % may exceed the residual. The test measures
// the share on 3,000 fresh rows. The difference of the two shares has a standard error of
// √(0.0475·(1/1000 + 1/3000)). Five standard errors are allowed.
TEST(LandmarkGrowthTest, FreshRowsLeaveMoreThanTheResidualAsRarelyAsWasAskedFor) {
  const double residual = 0.02;
  const double slack = 5 * std::sqrt(0.0475 * (1.0 / 1000 + 1.0 / 3000));
  const Matrix<double> rows = NormalRows({.rows = 12000, .cols = 4, .seed = 3});
  const Matrix<double> fresh = NormalRows({.rows = 3000, .cols = 4, .seed = 4});
  for (const char* policy : {"uniform", "rpcholesky", "d2"}) {
    SCOPED_TRACE(policy);
    const auto text = [&](int64_t most) {
      return absl::StrCat("f2(landmarks=auto(residual=", residual, ", most=", most,
                          "), policy=", policy, ", pool_rows=10000, serving_type=float64)");
    };
    const BuiltVersion version =
        MustBuild(SpecOf(text(1024), "rbf(gamma=0.1)", /*standardize=*/true), rows);
    const Certificate& certificate = version.certificate;
    EXPECT_GT(certificate.landmarks, 2 * kGrowthBlock);
    EXPECT_LT(certificate.landmarks, 1024);
    EXPECT_TRUE(certificate.warnings.empty()) << certificate.warnings[0];
    EXPECT_THAT(certificate.theorem,
                HasSubstr(absl::StrCat("at ", certificate.landmarks, " the 95 % quantile")));
    EXPECT_THAT(certificate.theorem, HasSubstr("with confidence 95 %, by number 962 in ascending"));
    EXPECT_LE(certificate.residual_share->quantile_95, residual);
    EXPECT_EQ(certificate.pool_rows, 9000);
    EXPECT_EQ(certificate.held_out_rows, 1200);
    const auto over = [&](const BuiltVersion& built) {
      const Matrix<double> f = FeaturesFrom(built, fresh);
      int64_t count = 0;
      for (int64_t i = 0; i < f.rows(); ++i) {
        double squares = 0;
        for (int64_t j = 0; j < f.cols(); ++j) squares += f(i, j) * f(i, j);
        count += 1 - squares > residual ? 1 : 0;
      }
      return static_cast<double>(count) / static_cast<double>(f.rows());
    };
    EXPECT_LE(over(version), 0.05 + slack);
    // With half as many landmarks, more fresh rows exceed the residual. With one block of landmarks
    // less, the deciding rows do not reach the goal.
    EXPECT_GE(
        over(MustBuild(SpecOf(text(certificate.landmarks / 2), "rbf(gamma=0.1)", true), rows)),
        0.05 + slack);
    // The candidates of d2 depend on the number of landmarks.
    if (std::string(policy) == "d2") continue;
    const BuiltVersion less =
        MustBuild(SpecOf(text(certificate.landmarks - kGrowthBlock), "rbf(gamma=0.1)", true), rows);
    EXPECT_THAT(less.certificate.warnings, Contains(HasSubstr("`most` was reached first")));
    EXPECT_EQ(less.certificate.landmarks, certificate.landmarks - kGrowthBlock);
  }
}

TEST(LandmarkGrowthTest, PoolMayComeFirst) {
  const Matrix<double> rows = NormalRows({.rows = 1000, .cols = 8, .seed = 5});
  const BuiltVersion version =
      MustBuild(SpecOf("f2(landmarks=auto(residual=1e-3), pool_rows=300)", "rbf(gamma=0.5)"), rows);
  EXPECT_EQ(version.certificate.landmarks, 270);
  EXPECT_THAT(version.certificate.warnings,
              Contains(HasSubstr("the pool has no more rows; stream more rows")));
  EXPECT_EQ(version.provenance.spec_text,
            "f2(landmarks=auto(residual=0.001, most=2048), policy=uniform, pool_rows=300, "
            "serving_type=float32)");
}

TEST(LandmarkGrowthTest, TheoremIsOfNumbersThatWereChosenBeforeTheBuild) {
  const Matrix<double> rows = NormalRows({.rows = 2000, .cols = 2, .seed = 5});
  for (const char* text : {"f1(landmarks=auto(residual=0.1))", "f2(landmarks=auto(residual=0.1))",
                           "f3(landmarks=auto(residual=0.1), dimensions=9)"}) {
    const Certificate certificate = MustBuild(SpecOf(text, "rbf(gamma=0.2)"), rows).certificate;
    EXPECT_THAT(certificate.theorem, HasSubstr("Balcan, Blum, Vempala 2006")) << text;
    EXPECT_THAT(certificate.theorem, HasSubstr("γ, ε and δ that were chosen before the build"));
  }
  const Certificate certificate =
      MustBuild(SpecOf("f2(landmarks=auto(residual=0.1), policy=rpcholesky)", "rbf(gamma=0.2)"),
                rows)
          .certificate;
  EXPECT_THAT(certificate.theorem, HasSubstr("on average over all builds"));
  // The pool's residual was computed for more landmarks than the version has, so the certificate
  // has none.
  EXPECT_FALSE(certificate.pool_trace_residual.has_value());
}

TEST(LandmarkGrowthTest, CanBeCancelledAtEachBlock) {
  UseOneBlasThread();
  const Matrix<double> rows = NormalRows({.rows = 600, .cols = 5, .seed = 1});
  const BuildSpec spec =
      SpecOf("f1(landmarks=auto(residual=1e-3, most=128))", "rbf(gamma=scale)", true);
  int64_t blocks = 0;
  for (int64_t stop_at = 0; stop_at < 6; ++stop_at) {
    StreamSample sample(spec, rows.cols());
    ASSERT_TRUE(sample.Add(WireRows(rows)).ok());
    RecordingMonitor monitor(stop_at);
    const absl::Status status = BuildVersion(spec, std::move(sample), monitor).status();
    ASSERT_TRUE(absl::IsCancelled(status)) << status;
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    if (monitor.phases.back() == "choose") ++blocks;
  }
  EXPECT_EQ(blocks, 4);
}

TEST(LandmarkGrowthTest, RowsOfZeroAndRowsThatFloat32CannotHoldAreTakenAsTheyAreServed) {
  Matrix<double> rows = UniformRows({.rows = 1000, .cols = 3, .seed = 1});
  for (int64_t i = 0; i < 1000; i += 4) std::fill_n(rows.row(i), 3, 0.0);
  const BuiltVersion zeros =
      MustBuild(SpecOf("f2(landmarks=auto(residual=0.01))", "poly(degree=4)"), rows);
  EXPECT_TRUE(zeros.certificate.warnings.empty());
  EXPECT_GT(*zeros.certificate.zero_landmarks, 0);
  for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] *= 1e60;
  const BuiltVersion large =
      MustBuild(SpecOf("f2(landmarks=auto(residual=0.01))", "linear()"), rows);
  EXPECT_EQ(large.serving_type, FloatType::kFloat64);
}

TEST(LandmarkGrowthTest, WhatCannotGrowIsRefusedByName) {
  struct Case {
    const char* mapping;
    const char* kernel;
    const char* field;
    const char* says;
  };
  for (const Case& c : {
           Case{"f2(landmarks=9, policy=given)", "rbf()", "policy", "expected uniform"},
           Case{"f2(landmarks=9, policy=kmeans)", "rbf()", "policy", "expected uniform"},
           Case{"f2(landmarks=9, pool_rows=199)", "rbf()", "pool_rows", "expected 200 to"},
           Case{"kpca(landmarks=9, dimensions=5)", "rbf()", "landmarks", "expected f1, f2"},
           Case{"f2(landmarks=9)", "precomputed()", "landmarks", "give the number"},
           Case{"f1(landmarks=9)", "poly(degree=2, coef0=-1)", "kernel", "positive semidefinite"},
           Case{"f1(landmarks=9)", "sigmoid(gamma=1)", "landmarks", "known to be positive"},
       }) {
    BuildSpec spec = SpecOf(c.mapping, c.kernel);
    EXPECT_TRUE(spec.Validate().ok()) << c.mapping << spec.Validate();
    spec.mapping.count_rule = CountRules()[0];
    spec.mapping.goal = 0.1;
    EXPECT_THAT(spec.Validate(),
                IsError(StatusCode::kInvalidArgument, _, c.field, HasSubstr(c.says)))
        << c.mapping;
  }
  for (const double goal : {-0.1, 0.0, 0.6, std::nan("")}) {
    const MappingSpec spec = {.landmarks = 5, .count_rule = CountRules()[0], .goal = goal};
    EXPECT_FALSE(spec.Validate().ok()) << goal;
  }
}

TEST(LandmarkGrowthTest, ShortestStreamHasTwentyRowsThatDecide) {
  const BuildSpec spec = SpecOf("f2(landmarks=auto(residual=0.2))", "linear()");
  const absl::Status status = Build(spec, NormalRows({.rows = 221, .cols = 2, .seed = 1})).status();
  ASSERT_TRUE(DetailOf(status).has_value()) << status;
  EXPECT_EQ(ReasonOf(status), "ROWS_TOO_FEW");
  EXPECT_EQ(DetailOf(status)->metadata.at("expected"), "222");
  const BuiltVersion version = MustBuild(spec, NormalRows({.rows = 222, .cols = 2, .seed = 1}));
  EXPECT_THAT(version.certificate.theorem, HasSubstr("of the 20 deciding rows"));
  EXPECT_EQ(version.certificate.landmarks, 32);
  EXPECT_THAT(version.certificate.warnings,
              Contains(HasSubstr("a confidence of 95 % needs at least 59")));
}

TEST(LandmarkGrowthTest, ForecastIsThatOfTheMostLandmarksAndTheirSearch) {
  const BuildSpec grown =
      SpecOf("f2(landmarks=auto(residual=0.01, most=500), pool_rows=9000)", "rbf(gamma=1)");
  const BuildSpec fixed = SpecOf("f2(landmarks=500, pool_rows=9000)", "rbf(gamma=1)");
  const BuildCost most = CostOfBuild(grown, 20000, 8);
  const BuildCost least = CostOfBuild(fixed, 20000, 8);
  EXPECT_GT(most.work.product_flops, least.work.product_flops);
  EXPECT_EQ(most.artifact_bytes, least.artifact_bytes);
}

}  // namespace
}  // namespace phimap::testing
