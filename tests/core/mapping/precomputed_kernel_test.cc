// Tests precomputed(), where the kernel values come with the stream.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/certificate/artifact_review.h"
#include "core/mapping/sample/gram_sample.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/remote_rows.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Compares each version with a build of the built-in kernel whose given landmarks are the
// version's, in the version's order. This second build gives the same features for three reasons:
// it greedily chooses the same pivots again, its components have a fixed sign, and its random draws
// depend on the seed alone. The Gram matrix of 24 rows under an rbf in 5 columns has a condition
// number of about 1e4. Errors in the last bits of kernel values can grow by this factor.
TEST(PrecomputedTest, FeaturesAreThoseOfTheKernelThatMadeTheGramMatrix) {
  const Matrix<double> stream = StreamRows();
  const Matrix<double> x = StreamRows(50, 9);
  for (const Named& c : kFamilies) {
    SCOPED_TRACE(c.name);
    const BuiltVersion version = MustBuild(SpecOf(c.mapping, "precomputed()"), Gram(stream));
    const std::vector<int64_t>& landmarks = version.certificate.landmark_rows;
    EXPECT_EQ(version.input_columns, static_cast<int64_t>(landmarks.size()));
    EXPECT_EQ(version.provenance.kernel_text, "precomputed()");

    // The stream starts with the given landmarks, followed by the rows on which the build measures.
    Matrix<double> given = Matrix<double>::Uninit(
        static_cast<int64_t>(landmarks.size()) + kStreamRows, kStreamColumns);
    std::copy_n(Picked(stream, landmarks).data(), landmarks.size() * kStreamColumns, given.data());
    std::copy_n(stream.data(), stream.size(), given.row(static_cast<int64_t>(landmarks.size())));
    std::string text = c.mapping;
    text.insert(text.find("serving"), "policy=given, ");
    BuildSpec spec = SpecOf(text, kRbf);
    spec.mapping.landmarks = static_cast<int64_t>(landmarks.size());
    const BuiltVersion same = MustBuild(spec, given);
    EXPECT_LE(LargestDifference(FeaturesFrom(version, ValuesFor(version, stream, x)),
                                FeaturesFrom(same, x)),
              1e-9);
  }
}

TEST(PrecomputedTest, CertificateIsThatOfTheKernel) {
  const Matrix<double> stream = StreamRows(600);
  const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=60)", "precomputed()"), Gram(stream));
  const Certificate& certificate = version.certificate;
  EXPECT_EQ(certificate.stream_rows, 600);
  EXPECT_EQ(certificate.held_out_rows, 60);
  EXPECT_EQ(certificate.pool_rows, 540);
  EXPECT_EQ(certificate.rank, 60);
  EXPECT_EQ(certificate.landmark_rows.size(), 60u);
  // The error of a pair is at most √(ρ(x)ρ(y)) <= 1. With a span of 60 dimensions, the mean error
  // is far below that.
  ASSERT_TRUE(certificate.kernel_error.has_value());
  EXPECT_GT(certificate.kernel_error->max, certificate.kernel_error->mean);
  EXPECT_LE(certificate.kernel_error->max, 1);
  EXPECT_EQ(certificate.kernel_error->scale, 1);
  EXPECT_LT(certificate.kernel_error->mean, 0.05);
  ASSERT_TRUE(certificate.spectrum.has_value());
  EXPECT_EQ(certificate.spectrum->rows, 60);
  EXPECT_TRUE(certificate.spectrum->held_out);
  EXPECT_NEAR(certificate.spectrum->trace, 1, 1e-12);
  // Both are of the 60 held-out rows; the one is computed in float64, the other by what is served.
  EXPECT_NEAR(certificate.spectrum->residual, *certificate.held_out_trace_residual, 1e-4);
  EXPECT_GT(*certificate.held_out_trace_residual, 0);
  EXPECT_LT(*certificate.held_out_trace_residual, 1);
  EXPECT_LT(certificate.serving_error->max, 1e-3);
  ASSERT_TRUE(certificate.self_check.has_value());
  const ReviewedArtifact review = ReviewArtifact(version.bytes).value();
  EXPECT_EQ(review.certificate.landmark_rows, certificate.landmark_rows);
  EXPECT_NE(review.reference_vectors, ReferenceVectors::kAbsent);
}

// Five components span φ of a linear kernel on these rows, so after centring on the landmarks'
// mean, only rounding is left.
TEST(PrecomputedTest, CentredKernelPcaIsMeasuredAgainstTheCentredKernel) {
  Matrix<double> stream = StreamRows(600);
  for (int64_t i = 0; i < stream.size(); ++i) stream.data()[i] += 2;
  const Certificate certificate =
      MustBuild(SpecOf("kpca(landmarks=40, dimensions=5)", "precomputed()"),
                Gram(stream, "linear()"))
          .certificate;
  ASSERT_TRUE(certificate.kernel_error.has_value());
  EXPECT_LT(certificate.kernel_error->max, 1e-4);
  EXPECT_GT(certificate.kernel_error->scale, 5);
}

// The kernel is rbf, so K(x, x) = 1.
TEST(PrecomputedTest, ResidualIsWhatTheFeaturesLackOfTheLastColumn) {
  const Matrix<double> stream = StreamRows();
  const Matrix<double> x = StreamRows(20, 5);
  const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=30)", "precomputed()"), Gram(stream));
  const Artifact artifact = DecodeArtifact(version.bytes).value();
  const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
  ASSERT_TRUE(residual.has_value());
  EXPECT_TRUE(residual->is_remote());
  const Matrix<double> values = ValuesFor(version, stream, x);
  Matrix<double> rows = Matrix<double>::Uninit(x.rows(), values.cols() + 1);
  for (int64_t i = 0; i < x.rows(); ++i) {
    std::copy_n(values.row(i), values.cols(), rows.row(i));
    rows(i, values.cols()) = 1;
  }
  const Matrix<double> features = FeaturesFrom(version, values);
  const Matrix<float> served = Converted<float, double>(features.view());
  std::vector<double> rho(static_cast<size_t>(x.rows()));
  std::vector<double> allowances(rho.size());
  residual->Compute(WireRows(rows), served.data(), rho.data(), allowances.data());
  // η is the bound on the error of the features for K(x, x) = 1. The allowance follows from η.
  const double eta = residual->FeatureError(nullptr, 0, 1);
  const double allowance = 4 * eta + 2 * eta * eta;
  EXPECT_GT(eta, 0);
  std::vector<double> self(rho.size());
  std::vector<double> rounding(rho.size());
  residual->Lengths(WireRows(rows), self.data(), rounding.data());
  EXPECT_EQ(self, std::vector<double>(rho.size(), 1.0));
  EXPECT_EQ(rounding, std::vector<double>(rho.size(), eta));
  for (int64_t i = 0; i < x.rows(); ++i) {
    double kept = 0;
    for (int64_t j = 0; j < features.cols(); ++j) kept += features(i, j) * features(i, j);
    EXPECT_NEAR(rho[i], std::max(0.0, 1 - kept), 1e-12);
    EXPECT_NEAR(allowances[i], allowance, 1e-12);
  }
  // Where the other values show that K(x, x) is wrong, the residual is all of it, and the allowance
  // is infinite.
  for (const double self : {-1.0, 0.0, 1e-3}) {
    for (int64_t i = 0; i < x.rows(); ++i) rows(i, values.cols()) = self;
    residual->Compute(WireRows(rows), served.data(), rho.data(), allowances.data());
    EXPECT_EQ(rho, std::vector<double>(rho.size(), std::max(0.0, self)));
    EXPECT_EQ(allowances, std::vector<double>(rho.size(), std::numeric_limits<double>::infinity()));
  }
}

TEST(PrecomputedTest, TheSameStreamInOtherBlocksGivesTheSameBytes) {
  const Matrix<double> gram = Gram(StreamRows());
  const BuildSpec spec = SpecOf("f2(landmarks=30)", "precomputed()");
  const BuiltVersion version = MustBuild(spec, gram);
  for (const int64_t block : {1, 7, 299}) {
    const BuiltVersion again = Build(spec, WireRows(gram), block).value();
    EXPECT_EQ(again.bytes, version.bytes);
  }
  EXPECT_NE(MustBuild(SpecOf("f2(landmarks=30)", "precomputed()", false, 2), gram).bytes,
            version.bytes);
}

TEST(PrecomputedTest, GivenLandmarksAreTheFirstRows) {
  const BuiltVersion version =
      MustBuild(SpecOf("f1(landmarks=12, policy=given)", "precomputed()"), Gram(StreamRows()));
  std::vector<int64_t> first;
  for (int64_t i = 0; i < 12; ++i) first.push_back(i);
  EXPECT_EQ(version.certificate.landmark_rows, first);
}

// For a smooth kernel with values in float32, the lowest eigenvalues of the Gram matrix are noise
// of either sign.
TEST(PrecomputedTest, ValuesInFloat32AreNotTakenForMoreThanTheyAre) {
  const Matrix<double> gram = Gram(StreamRows(400), "rbf(gamma=0.001)");
  const Matrix<float> rounded = Converted<float, double>(gram.view());
  for (const char* type : {"float32", "float64"}) {
    const BuildSpec spec =
        SpecOf(std::string("f2(landmarks=200, serving_type=") + type + ")", "precomputed()");
    const BuiltVersion version = Build(spec, WireRows(rounded)).value();
    EXPECT_LT(version.certificate.rank, 100);
    EXPECT_GE(version.certificate.tolerance, 200 * 0x1p-24 * 0.99);
    EXPECT_LT(version.certificate.kernel_error->max, 1e-3);
  }
}

TEST(PrecomputedTest, AStreamThatIsNotSquareIsRefused) {
  const Matrix<double> gram = Gram(StreamRows());
  const BuildSpec spec = SpecOf("f2(landmarks=30)", "precomputed()");
  const absl::Status few = Build(spec, WireRows(gram).Slice(0, 299)).status();
  EXPECT_THAT(few, IsError(StatusCode::kFailedPrecondition, "MATRIX_NOT_SQUARE"));
  EXPECT_EQ(DetailOf(few)->metadata.at("actual"), "299");
  Matrix<double> tall = Matrix<double>(kStreamRows + 1, kStreamRows);
  EXPECT_THAT(Build(spec, tall).status(),
              IsError(StatusCode::kInvalidArgument, "MATRIX_NOT_SQUARE"));
}

TEST(PrecomputedTest, WhatIsNoKernelIsRefusedByF2AndNamedByF1) {
  struct Fault {
    const char* reason;
    std::function<void(Matrix<double>&)> apply;
  };
  const Fault kFaults[] = {
      {"KERNEL_NOT_SYMMETRIC",
       [](Matrix<double>& m) {
         for (int64_t i = 0; i < m.rows(); ++i) {
           for (int64_t j = 0; j < i; ++j) m(i, j) *= 1.001;
         }
       }},
      {"KERNEL_NOT_POSITIVE_SEMIDEFINITE",
       [](Matrix<double>& m) {
         for (int64_t i = 0; i < m.rows(); ++i) m(i, i) = 0.1;
       }},
  };
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.reason);
    Matrix<double> gram = Gram(StreamRows());
    fault.apply(gram);
    for (const char* mapping : {"f2(landmarks=30)", "f3(landmarks=30, dimensions=9)",
                                "kpca(landmarks=30, dimensions=3)"}) {
      EXPECT_THAT(Build(SpecOf(mapping, "precomputed()"), gram).status(),
                  IsError(StatusCode::kFailedPrecondition, fault.reason));
    }
    const BuiltVersion similarity = MustBuild(SpecOf("f1(landmarks=30)", "precomputed()"), gram);
    ASSERT_EQ(similarity.certificate.warnings.size(), 1u);
    EXPECT_NE(similarity.certificate.warnings[0].find("It is a similarity"), std::string::npos);
    EXPECT_EQ(similarity.certificate.theorem.substr(0, 5), "none:");
  }
}

}  // namespace
}  // namespace phimap::testing
