#include "core/mapping/build/version_build.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/certificate/held_out_features.h"
#include "core/landmark/split.h"
#include "core/linalg/panel_product.h"
#include "core/plan/artifact.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

Matrix<double> FloatRows(int64_t rows, int64_t cols, uint64_t seed) {
  const Matrix<float> x = UniformFloatRows({.rows = rows, .cols = cols, .seed = seed});
  return Converted<double, float>(x.view());
}

std::vector<BuildSpec> AllSpecs() {
  return {SpecOf("f1(landmarks=40)", "rbf(gamma=scale)"),
          SpecOf("f2(landmarks=40)", "rbf(gamma=median)", true),
          SpecOf("f2(landmarks=40, pool_rows=100, serving_type=float64)",
                 "rbf(gamma=0.5) + 0.1*poly(degree=2, coef0=1)"),
          SpecOf("f2(landmarks=40)", "linear()", true),
          SpecOf("f3(landmarks=40, dimensions=12)", "poly(degree=3, coef0=1)"),
          SpecOf("f3(landmarks=40, dimensions=12, projection=sign)", "rbf(gamma=0.5)")};
}

TEST(VersionBuildTest, BytesDependOnSpecSeedAndRowsAlone) {
  const Matrix<float> x32 = UniformFloatRows({.rows = 3000, .cols = 6, .seed = 1});
  const Matrix<double> x64 = Converted<double, float>(x32.view());
  std::set<std::string> different;
  for (BuildSpec spec : AllSpecs()) {
    const absl::StatusOr<BuiltVersion> built = Build(spec, WireRows(x64));
    ASSERT_TRUE(built.ok()) << spec.ToText() << built.status();
    EXPECT_EQ(Build(spec, WireRows(x64))->bytes, built->bytes) << spec.ToText();
    EXPECT_EQ(Build(spec, WireRows(x32))->bytes, built->bytes) << spec.ToText() << " float32";
    for (const int64_t block : {1, 7, 256, 2999}) {
      EXPECT_EQ(Build(spec, WireRows(x64), block)->bytes, built->bytes)
          << spec.ToText() << " in blocks of " << block;
    }
    different.insert(built->bytes);
    spec.seed = 2;
    different.insert(Build(spec, WireRows(x64))->bytes);
    Matrix<double> other = x64.Clone();
    for (int64_t i = 0; i < 3000; ++i) other(i, 5) *= 1 + 0x1p-20;
    different.insert(Build(spec, WireRows(other))->bytes);
  }
  EXPECT_EQ(different.size(), 3 * AllSpecs().size());
}

// Under the kernel delta(), a row stands for a category. The error of a pair is 1 if both rows have
// the same category and no landmark has it. With 5,000 equally likely categories, this is a share
// of (5000 − rank)/5000² of all pairs. The certificate measures a thousand pairs that share no row,
// and probably none of them has an error. An interval from the standard deviation of these pairs
// would be "± 0", so the certificate has no kernel_error_half_width.
TEST(VersionBuildTest, ErrorsTooRareForDisjointPairsAreNotSaidToBeNothing) {
  const RandomStream random(4, StreamId::kProjection);
  Matrix<double> x(21'000, 1);
  for (int64_t i = 0; i < x.rows(); ++i) {
    x(i, 0) = static_cast<double>(random.UniformBelow(static_cast<uint64_t>(i), 5000));
  }
  const Certificate certificate = MustBuild(SpecOf("f2(landmarks=300)", "delta()"), x).certificate;
  ASSERT_EQ(certificate.held_out_rows, 2000);
  const double erring = static_cast<double>(5000 - certificate.rank.value()) / 5000 / 5000;
  ASSERT_TRUE(certificate.kernel_error_bound.has_value());
  EXPECT_EQ(certificate.kernel_error_bound->pairs, 1000);
  EXPECT_EQ(certificate.kernel_error_bound->largest, 0);
  EXPECT_GE(certificate.kernel_error_bound->share, erring);
  ASSERT_TRUE(certificate.kernel_error_interval.has_value());
  EXPECT_LT(certificate.kernel_error_interval->low, erring);
  EXPECT_GT(certificate.kernel_error_interval->high, erring);
  EXPECT_FALSE(certificate.kernel_error_half_width.has_value());
}

TEST(VersionBuildTest, ArtifactSaysWhatItWasMadeFrom) {
  const Matrix<double> x = FloatRows(500, 4, 2);
  const BuiltVersion built =
      MustBuild(SpecOf("f3(landmarks=30, dimensions=8)", "rbf()", true, 77), x);
  const Artifact artifact = DecodeArtifact(built.bytes).value();
  EXPECT_EQ(artifact.provenance.spec_text,
            "f3(landmarks=30, dimensions=8, projection=gaussian, policy=uniform, "
            "pool_rows=20000, serving_type=float32)");
  // Standardised entries have variance 1, so gamma is 1/p.
  EXPECT_EQ(artifact.provenance.kernel_text, "rbf(gamma=0.25)");
  EXPECT_TRUE(artifact.provenance.standardize);
  EXPECT_EQ(artifact.provenance.seed, 77u);
  EXPECT_EQ(built.input_columns, 4);
  EXPECT_EQ(built.output_columns, 8);
  EXPECT_EQ(built.serving_type, FloatType::kFloat32);
  const Certificate certificate = DecodeCertificate(artifact.certificate).value();
  EXPECT_EQ(certificate.stream_rows, 500);
  EXPECT_EQ(certificate.policy, "uniform");
  EXPECT_EQ(certificate.rank, built.certificate.rank);
  EXPECT_FALSE(certificate.theorem.empty());
}

TEST(VersionBuildTest, ShiftIsTheLandmarksMeanOnlyForTranslationInvariantKernels) {
  const Matrix<double> x = FloatRows(50, 3, 3);
  std::vector<double> mean(3);
  for (int64_t i = 0; i < 50; ++i) {
    for (int64_t k = 0; k < 3; ++k) mean[k] += x(i, k) / 50;
  }
  const auto input = [&](const char* kernel, bool standardize) {
    const BuiltVersion built = MustBuild(SpecOf("f2(landmarks=50)", kernel, standardize), x);
    absl::StatusOr<Artifact> artifact = DecodeArtifact(built.bytes);
    return std::move(artifact->plan.input);
  };
  for (const char* kernel : {"linear()", "poly(degree=2)", "rbf(gamma=1)*linear()"}) {
    EXPECT_TRUE(input(kernel, false).shift.empty()) << kernel;
    EXPECT_TRUE(input(kernel, false).scale.empty()) << kernel;
  }
  for (const bool standardize : {false, true}) {
    const InputStage stage = input("rbf(gamma=1)", standardize);
    ASSERT_EQ(stage.shift.size(), 3u);
    EXPECT_EQ(stage.scale.size(), standardize ? 3u : 0u);
    // Every row is a landmark here, so the mean of the landmarks is that of the stream.
    for (int64_t k = 0; k < 3; ++k) EXPECT_NEAR(stage.shift[k], mean[k], 1e-15);
  }
}

// The variance of these numbers is below the smallest normal number, or underflows float64. An
// earlier version took such rows for a single point and reported rank 1 without an error.
TEST(VersionBuildTest, StandardisedRowsOfTinyNumbersHaveTheFeaturesOfTheirMultiples) {
  const Matrix<double> x = FloatRows(400, 3, 5);
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    BuildSpec spec = SpecOf("f2(landmarks=40)", "rbf(gamma=scale)", true);
    spec.mapping.serving_type = type;
    const BuiltVersion ordinary = MustBuild(spec, x);
    const Matrix<double> expected = FeaturesFrom(ordinary, x);
    ASSERT_EQ(ordinary.certificate.rank, 40);
    for (const double factor : {1e-160, 1e-200, 1e-290, 1e140}) {
      SCOPED_TRACE(factor);
      Matrix<double> scaled = x.Clone();
      for (int64_t i = 0; i < x.size(); ++i) scaled.data()[i] *= factor;
      const BuiltVersion built = MustBuild(spec, scaled);
      EXPECT_EQ(built.certificate.rank, 40);
      EXPECT_NEAR(built.certificate.kernel_error->mean, ordinary.certificate.kernel_error->mean,
                  1e-3 * ordinary.certificate.kernel_error->mean);
      // Scaled rows, once standardised, differ from the original ones by some 2^-53, which may
      // change how float32 rounds.
      const Matrix<double> f = FeaturesFrom(built, scaled);
      EXPECT_LE(LargestDifference(f, expected), type == FloatType::kFloat32 ? 1e-3 : 1e-9);
    }
  }
}

TEST(VersionBuildTest, StandardisedBuildEqualsTheBuildOfStandardisedRows) {
  Matrix<double> x = FloatRows(200, 4, 4);
  for (int64_t i = 0; i < 200; ++i) {
    x(i, 1) = 1000 + 30 * x(i, 1);
    x(i, 2) = 5;  // constant, so it is shifted to 0 and not scaled
  }
  Matrix<double> z = x.Clone();
  for (const int64_t k : {0, 1, 2, 3}) {
    long double mean = 0;
    long double square = 0;
    for (int64_t i = 0; i < 200; ++i) mean += x(i, k) / 200.0L;
    for (int64_t i = 0; i < 200; ++i) square += (x(i, k) - mean) * (x(i, k) - mean) / 200.0L;
    for (int64_t i = 0; i < 200; ++i) {
      z(i, k) = k == 2 ? 0 : static_cast<double>((x(i, k) - mean) / std::sqrt(square));
    }
  }
  for (const char* kernel : {"rbf(gamma=0.2)", "poly(degree=2, gamma=0.3, coef0=1)"}) {
    const std::string mapping = "f2(landmarks=60, serving_type=float64)";
    const Matrix<double> f = FeaturesFrom(MustBuild(SpecOf(mapping, kernel, true), x), x);
    const Matrix<double> g = FeaturesFrom(MustBuild(SpecOf(mapping, kernel, false), z), z);
    const Matrix<double> gram_f = NaiveGram(f, f);
    const Matrix<double> gram_g = NaiveGram(g, g);
    EXPECT_LE(LargestDifference(gram_f, gram_g), 1e-9) << kernel;
  }
}

// 900 of the 1,000 rows are landmarks. The certificate must be measured on the other 100 rows, and
// its numbers show whether it was.
TEST(VersionBuildTest, CertificateIsMeasuredOnRowsThatAreNoLandmarks) {
  const Matrix<double> x = FloatRows(1000, 3, 5);
  const BuiltVersion built = MustBuild(SpecOf("f1(landmarks=900)", "linear()"), x);
  EXPECT_EQ(built.certificate.stream_rows, 1000);
  EXPECT_EQ(built.certificate.pool_rows, 900);
  EXPECT_EQ(built.certificate.held_out_rows, 100);
  EXPECT_EQ(built.certificate.landmarks, 900);
  const absl::StatusOr<Artifact> artifact = DecodeArtifact(built.bytes);
  const auto& rows =
      std::get<ProductFeatures<float>>(std::get<0>(artifact->plan.stages).features).rows;
  std::set<std::vector<double>> landmarks;
  for (int64_t i = 0; i < 900; ++i) landmarks.insert({rows.row(i), rows.row(i) + 3});
  ASSERT_EQ(landmarks.size(), 900u);
  std::vector<int64_t> others;
  for (int64_t i = 0; i < 1000; ++i) {
    if (landmarks.count({x.row(i), x.row(i) + 3}) == 0) others.push_back(i);
  }
  ASSERT_EQ(others.size(), 100u);
  // `longest` becomes the largest ‖F(x)‖ of these rows. F1 in float64 is exact to 1e-15.
  double longest = 0;
  for (const int64_t i : others) {
    double square = 0;
    for (int64_t j = 0; j < 900; ++j) {
      double product = 0;
      for (int64_t k = 0; k < 3; ++k) product += x(i, k) * rows(j, k);
      square += product * product;
    }
    longest = std::max(longest, std::sqrt(square));
  }
  ASSERT_TRUE(built.certificate.serving_error.has_value());
  EXPECT_EQ(built.certificate.serving_error->count, 100);
  EXPECT_NEAR(built.certificate.serving_error->scale, longest, 1e-12 * longest);
}

TEST(VersionBuildTest, FewerHeldOutRowsMakeAnotherCertificateOfTheSameFeatures) {
  const Matrix<double> x = FloatRows(3000, 4, 6);
  const Matrix<double> rows = FloatRows(20, 4, 7);
  for (const std::string parameters :
       {"f1(landmarks=40", "f2(landmarks=40", "f3(landmarks=40, dimensions=8",
        "kpca(landmarks=40, dimensions=8", "fourier(dimensions=8"}) {
    const BuiltVersion all =
        MustBuild(SpecOf(parameters + ", serving_type=float32)", "rbf(gamma=median)"), x);
    const BuiltVersion few = MustBuild(
        SpecOf(parameters + ", held_out_rows=40, serving_type=float32)", "rbf(gamma=median)"), x);
    EXPECT_EQ(all.certificate.held_out_rows, 300) << parameters;
    EXPECT_EQ(few.certificate.held_out_rows, 40) << parameters;
    EXPECT_EQ(few.certificate.landmark_rows, all.certificate.landmark_rows) << parameters;
    const Artifact of_all = DecodeArtifact(all.bytes).value();
    const Artifact of_few = DecodeArtifact(few.bytes).value();
    EXPECT_THAT(of_few.provenance.spec_text, ::testing::HasSubstr(", held_out_rows=40,"));
    EXPECT_THAT(of_all.provenance.spec_text, ::testing::Not(::testing::HasSubstr("held_out_rows")));
    const Matrix<double> features = FeaturesOf(of_few.plan, rows.view(), NeverStop).value();
    const Matrix<double> expected = FeaturesOf(of_all.plan, rows.view(), NeverStop).value();
    EXPECT_TRUE(SameBits(features, expected)) << parameters;
    if (all.certificate.kernel_error.has_value()) {
      EXPECT_LT(few.certificate.kernel_error->count, all.certificate.kernel_error->count);
    }
  }
  // There are no more rows than a tenth of the stream, whatever the spec allows.
  EXPECT_EQ(MustBuild(SpecOf("f2(landmarks=40, held_out_rows=2000)", "rbf(gamma=0.5)"), x)
                .certificate.held_out_rows,
            300);
  for (const char* const refused : {"29", "2001", "0"}) {
    EXPECT_THAT(MappingSpec::Parse(absl::StrCat("f2(landmarks=40, held_out_rows=", refused, ")"))
                    .status()
                    .message(),
                ::testing::HasSubstr("from 30 to 2000"));
  }
}

TEST(VersionBuildTest, KernelErrorIsSmallOnTheSpanAndMeasuredBesideIt) {
  const Matrix<double> x = FloatRows(2000, 3, 6);
  // The kernel has rank 4, so 100 landmarks span all of φ-space.
  const BuiltVersion full = MustBuild(SpecOf("f2(landmarks=100)", "poly(degree=1, coef0=1)"), x);
  EXPECT_EQ(full.certificate.rank, 4);
  EXPECT_LE(full.certificate.kernel_error->max, 1e-5);
  EXPECT_LE(*full.certificate.held_out_trace_residual, 1e-5);
  EXPECT_EQ(full.certificate.kernel_error->count, 200 * 199 / 2);
  // For a rough kernel, the 100 landmarks do not span φ-space.
  const BuiltVersion rough = MustBuild(SpecOf("f2(landmarks=100)", "rbf(gamma=20)"), x);
  EXPECT_GT(rough.certificate.kernel_error->max, 0.1);
  EXPECT_GT(*rough.certificate.held_out_trace_residual, 0.05);
  EXPECT_LT(*rough.certificate.held_out_trace_residual, 1);
  EXPECT_GE(rough.certificate.kernel_error->max, rough.certificate.kernel_error->mean);
  EXPECT_TRUE(rough.certificate.warnings.empty());
}

// If the components span φ, F(x)·F(y) is exactly the kernel centred on the landmarks. So the
// measured error is only the rounding of values of up to about 50. If the kernel were centred on
// another point, the error would be at least 1.
TEST(VersionBuildTest, CentredKernelPcaIsMeasuredAgainstTheCentredKernel) {
  Matrix<double> x = FloatRows(3000, 4, 6);
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < 4; ++j) x(i, j) = 2 * x(i, j) + 3;
  }
  for (const char* mapping :
       {"kpca(landmarks=60, dimensions=4)", "kpca(landmarks=60, dimensions=4, policy=given)",
        "kpca(landmarks=60, dimensions=4, rounding=1e9, serving_type=float64)"}) {
    SCOPED_TRACE(mapping);
    const Certificate certificate = MustBuild(SpecOf(mapping, "linear()"), x).certificate;
    ASSERT_TRUE(certificate.kernel_error.has_value());
    EXPECT_LT(certificate.kernel_error->max, 1e-4);
    // Rows within ±2 around their mean give a scale of up to 16; K itself is up to 100.
    EXPECT_GT(certificate.kernel_error->scale, 4);
    EXPECT_LT(certificate.kernel_error->scale, 20);
    EXPECT_TRUE(certificate.kernel_error_interval.has_value());
    EXPECT_EQ(certificate.kernel_error_bound->pairs, certificate.held_out_rows / 2);
  }
}

// Compares the certificate's error with the error on 300 rows that the build did not see, against
// the kernel centred on the given landmarks. The mean over all pairs of the fresh rows agrees with
// the certificate's mean to within a tenth.
TEST(VersionBuildTest, TheErrorOfCentredKernelPcaIsThatOfFreshRows) {
  constexpr int64_t kLandmarks = 80;
  const Matrix<double> x = FloatRows(4000, 3, 7);
  const Matrix<double> fresh = FloatRows(300, 3, 8);
  const KernelExpression kernel = MustParseKernel("rbf(gamma=0.7)");
  Matrix<double> landmarks(kLandmarks, 3);
  std::copy_n(x.data(), landmarks.size(), landmarks.data());
  const auto means = [&](const Matrix<double>& rows) {
    const Matrix<double> k = NaiveKernelMatrix(kernel, rows, landmarks);
    std::vector<double> mean(static_cast<size_t>(rows.rows()));
    for (int64_t i = 0; i < rows.rows(); ++i) {
      for (int64_t j = 0; j < kLandmarks; ++j) mean[i] += k(i, j) / kLandmarks;
    }
    return mean;
  };
  const std::vector<double> of_landmarks = means(landmarks);
  double all = 0;
  for (const double mean : of_landmarks) all += mean / kLandmarks;
  const std::vector<double> of_rows = means(fresh);
  const Matrix<double> k = NaiveKernelMatrix(kernel, fresh, fresh);
  for (const char* options :
       {"", ", rounding=15", ", sparsify=1.5", ", quantise=true", ", input_dimensions=40"}) {
    SCOPED_TRACE(options);
    const BuiltVersion built = MustBuild(
        SpecOf(absl::StrCat("kpca(landmarks=80, dimensions=6, policy=given", options, ")"),
               "rbf(gamma=0.7)"),
        x);
    const Matrix<double> f = FeaturesFrom(built, fresh);
    double error = 0;
    for (int64_t i = 0; i < 300; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t n = 0; n < f.cols(); ++n) dot += f(i, n) * f(j, n);
        error += std::abs(k(i, j) - of_rows[i] - of_rows[j] + all - dot) / (300 * 299 / 2.0);
      }
    }
    ASSERT_TRUE(built.certificate.kernel_error.has_value());
    EXPECT_NEAR(built.certificate.kernel_error->mean, error, 0.1 * error);
  }
}

TEST(VersionBuildTest, CertificateWarnsOfWhatAUserShouldKnow) {
  const auto warnings = [](const BuildSpec& spec, int64_t rows) {
    std::string all;
    for (const std::string& w : MustBuild(spec, FloatRows(rows, 2, 7)).certificate.warnings) {
      all += w + "\n";
    }
    return all;
  };
  EXPECT_NE(warnings(SpecOf("f2(landmarks=50)", "rbf(gamma=5)"), 60).find("not measured"),
            std::string::npos);
  EXPECT_NE(warnings(SpecOf("f3(landmarks=50, dimensions=20)", "poly(degree=2, coef0=1)"), 500)
                .find("rank 6 is below the 20 dimensions"),
            std::string::npos);
  EXPECT_NE(warnings(SpecOf("f1(landmarks=50)", "poly(degree=2, coef0=-1)"), 500)
                .find("not positive semidefinite"),
            std::string::npos);
}

// Two clouds of unit width that are 2·10⁴ apart. ‖x‖² is about 10⁸, so float32 represents distances
// of about 1 only to within 10⁸·2⁻²⁴ ≈ 6, and the rbf kernel inside of a cloud is noise.
Matrix<double> DistantClouds() {
  const RandomStream random(5, StreamId::kStartVectors);
  Matrix<double> rows(600, 3);
  for (int64_t i = 0; i < rows.size(); ++i) {
    rows.data()[i] = random.Normal(i) + (i / 3 % 2 == 0 ? 1e4 : -1e4);
  }
  return rows;
}

TEST(VersionBuildTest, AnOpenServingTypeBecomesFloat64WhereFloat32ErrsTooMuch) {
  const Matrix<double> rows = DistantClouds();
  const BuiltVersion open = MustBuild(SpecOf("f2(landmarks=40)", "rbf(gamma=0.3)"), rows);
  EXPECT_EQ(open.serving_type, FloatType::kFloat64);
  EXPECT_THAT(open.provenance.spec_text, HasSubstr("serving_type=float64"));
  ASSERT_FALSE(open.certificate.warnings.empty());
  EXPECT_THAT(open.certificate.warnings.back(), HasSubstr("float32"));
  EXPECT_LT(open.certificate.serving_error->max, 1e-6);
  // Except for the warning, the version equals one with an explicit float64, with the same rank
  // tolerance and the same features.
  const BuiltVersion asked =
      MustBuild(SpecOf("f2(landmarks=40, serving_type=float64)", "rbf(gamma=0.3)"), rows);
  EXPECT_EQ(open.certificate.rank, asked.certificate.rank);
  EXPECT_EQ(open.certificate.tolerance, asked.certificate.tolerance);
  const Matrix<double> a = FeaturesFrom(open, rows);
  const Matrix<double> b = FeaturesFrom(asked, rows);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(std::equal(a.data(), a.data() + a.size(), b.data()));
}

TEST(VersionBuildTest, AnExplicitFloat32FailsWhereItErrsTooMuch) {
  const absl::StatusOr<BuiltVersion> built =
      Build(SpecOf("f2(landmarks=40, serving_type=float32)", "rbf(gamma=0.3)"), DistantClouds());
  EXPECT_THAT(built.status(), IsError(StatusCode::kFailedPrecondition, "SERVING_PRECISION_TOO_LOW",
                                      "serving_type"));
}

TEST(VersionBuildTest, AnOpenServingTypeStaysFloat32WhereThatSuffices) {
  const BuiltVersion built = MustBuild(SpecOf("f2(landmarks=40)", "rbf(gamma=0.3)"), [] {
    Matrix<double> rows = DistantClouds();
    for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] -= i / 3 % 2 == 0 ? 1e4 : -1e4;
    return rows;
  }());
  EXPECT_EQ(built.serving_type, FloatType::kFloat32);
}

TEST(VersionBuildTest, FeaturesThatAreAllZeroAreExactInFloat32) {
  const Matrix<double> rows = NormalRows({.rows = 300, .cols = 3, .seed = 8});
  for (const char* mapping :
       {"f1(landmarks=20, serving_type=float32)", "f2(landmarks=20, serving_type=float32)",
        "kpca(landmarks=20, dimensions=5, serving_type=float32)"}) {
    for (const char* kernel : {"delta()", "rbf(gamma=5000)"}) {
      const BuiltVersion built = MustBuild(SpecOf(mapping, kernel), rows);
      EXPECT_EQ(built.serving_type, FloatType::kFloat32) << mapping << " " << kernel;
    }
  }
}

TEST(VersionBuildTest, ADeltaOfCategoriesIsServedInFloat32WithAndWithoutStandardization) {
  Matrix<double> rows = NormalRows({.rows = 500, .cols = 2, .seed = 9});
  for (int64_t k = 0; k < rows.size(); ++k) {
    rows.data()[k] = std::abs(std::remainder(std::floor(3 * rows.data()[k]), 3));
  }
  for (const char* kernel : {"delta()", "0.5*delta() + 0.5*rbf(gamma=0.1)"}) {
    for (const char* mapping : {"f1(landmarks=80)", "f2(landmarks=80)"}) {
      for (const bool standardize : {false, true}) {
        const BuiltVersion built = MustBuild(SpecOf(mapping, kernel, standardize), rows);
        EXPECT_EQ(built.serving_type, FloatType::kFloat32) << mapping << " " << kernel;
        EXPECT_LT(built.certificate.serving_error->max, 1e-5);
      }
    }
  }
}

// Expects that every reference vector has a nonzero feature, because a broken engine could also
// answer 0.
void ExpectGoldenFeatures(const BuiltVersion& built) {
  if (!VectorTargetFuses()) GTEST_SKIP() << "no reference vectors without fused multiply-add";
  ASSERT_TRUE(built.certificate.self_check.has_value());
  const SelfCheck& check = *built.certificate.self_check;
  EXPECT_EQ(check.rows, 4);
  const size_t row_bytes = check.features_le.size() / 4;
  for (size_t i = 0; i < 4; ++i) {
    const std::string row = check.features_le.substr(i * row_bytes, row_bytes);
    EXPECT_NE(row.find_first_not_of('\0'), std::string::npos) << "reference vector " << i;
  }
}

TEST(VersionBuildTest, ReferenceVectorsHaveFeaturesUnderAKernelThatIsZeroFarFromTheLandmarks) {
  for (const char* mapping :
       {"f1(landmarks=40)", "f2(landmarks=40)", "f2(landmarks=40, serving_type=float64)",
        "f3(landmarks=40, dimensions=12)", "f2(landmarks=2)"}) {
    SCOPED_TRACE(mapping);
    ExpectGoldenFeatures(
        MustBuild(SpecOf(mapping, "rbf(gamma=5000)", true), FloatRows(500, 6, 11)));
  }
}

// For rows of the stream, |K| is at most 8^42 = 8.5e37, which float32 can represent. For normal
// rows, |K| would be too large for float32.
TEST(VersionBuildTest, ReferenceVectorsHaveFeaturesWhereMadeUpOnesWouldOverflow) {
  Matrix<double> signs = FloatRows(600, 8, 12);
  for (int64_t i = 0; i < signs.size(); ++i) signs.data()[i] = signs.data()[i] < 0 ? -1 : 1;
  ExpectGoldenFeatures(MustBuild(
      SpecOf("f1(landmarks=200, serving_type=float32)", "poly(degree=42, gamma=1, coef0=0)"),
      signs));
}

TEST(VersionBuildTest, PoolIsBoundedBySpecOnLongStreams) {
  const Matrix<double> x = FloatRows(10000, 2, 8);
  const BuildSpec spec = SpecOf("f2(landmarks=20, pool_rows=50)", "rbf(gamma=1)");
  const BuiltVersion built = MustBuild(spec, x);
  EXPECT_EQ(built.certificate.stream_rows, 10000);
  EXPECT_EQ(built.certificate.pool_rows, 50);
  EXPECT_EQ(built.certificate.held_out_rows, 1000);
  const StreamSample sample(spec, 2);
  EXPECT_EQ(sample.memory_bound_bytes(), (50 + kMaxHeldOutRows) * 3 * 8);
}

}  // namespace
}  // namespace phimap::testing
