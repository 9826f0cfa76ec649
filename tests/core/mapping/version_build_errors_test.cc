// Tests inputs that a build refuses, and stops builds at every checkpoint.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/mapping/build/version_build.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

TEST(VersionBuildErrorsTest, EmptyStream) {
  EXPECT_THAT(Build(SpecOf("f2(landmarks=5)", "rbf(gamma=1)"), Matrix<double>(0, 3)).status(),
              IsError(StatusCode::kFailedPrecondition, "STREAM_EMPTY", "examples",
                      AllOf(HasSubstr("0 rows"), HasSubstr("5"))));
}

TEST(VersionBuildErrorsTest, FewerRowsThanLandmarksNamesBothNumbers) {
  for (const char* mapping :
       {"f1(landmarks=31)", "f2(landmarks=31)", "f3(landmarks=31, dimensions=2)"}) {
    const Matrix<double> x = NormalRows({.rows = 30, .cols = 3, .seed = 1});
    const absl::Status status = Build(SpecOf(mapping, "rbf(gamma=median)"), x).status();
    EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition, "ROWS_TOO_FEW", "landmarks",
                                AllOf(HasSubstr("30"), HasSubstr("31"))));
    EXPECT_EQ(DetailOf(status)->metadata.at("expected"), "31");
    EXPECT_EQ(DetailOf(status)->metadata.at("actual"), "30");
  }
}

TEST(VersionBuildErrorsTest, BlockWithABadValueOrWidthLeavesTheSampleAsItWas) {
  const BuildSpec spec = SpecOf("f2(landmarks=5)", "rbf(gamma=scale)");
  const Matrix<double> good = NormalRows({.rows = 400, .cols = 3, .seed = 2});
  StreamSample sample(spec, 3);
  ASSERT_TRUE(sample.Add(WireRows(good)).ok());
  Matrix<double> bad = good.Clone();
  bad(399, 1) = std::numeric_limits<double>::infinity();
  EXPECT_THAT(sample.Add(WireRows(bad)), IsError(StatusCode::kInvalidArgument, "VALUE_NOT_FINITE",
                                                 "examples.dense.rows[399].columns[1]"));
  const absl::Status narrow = sample.Add(WireRows(Matrix<double>(4, 2)));
  EXPECT_THAT(narrow,
              IsError(StatusCode::kInvalidArgument, "COLUMNS_MISMATCH", "examples.dense.columns"));
  EXPECT_EQ(DetailOf(narrow)->metadata.at("expected"), "3");
  EXPECT_EQ(DetailOf(narrow)->metadata.at("actual"), "2");
  EXPECT_EQ(sample.rows(), 400);
  RecordingMonitor monitor;
  EXPECT_EQ(BuildVersion(spec, std::move(sample), monitor)->bytes,
            Build(spec, WireRows(good))->bytes);
}

TEST(VersionBuildErrorsTest, ConstantDataHaveNoScaleButANumberWorks) {
  Matrix<double> x(100, 3);
  std::fill_n(x.data(), x.size(), 2.5);
  for (const char* kernel : {"rbf(gamma=scale)", "rbf(gamma=median)"}) {
    for (const bool standardize : {false, true}) {
      EXPECT_THAT(Build(SpecOf("f2(landmarks=10)", kernel, standardize), x).status(),
                  IsError(StatusCode::kFailedPrecondition, "GAMMA_UNDEFINED", "kernel"));
    }
  }
  const BuiltVersion built = Build(SpecOf("f2(landmarks=10)", "rbf(gamma=1)"), x).value();
  EXPECT_EQ(built.certificate.rank, 1);
}

TEST(VersionBuildErrorsTest, KernelsThatAreNotDefiniteOnTheLandmarks) {
  const Matrix<double> x = NormalRows({.rows = 100, .cols = 3, .seed = 3});
  // Validation would refuse these specs, because the kernel's text shows that it is indefinite. The
  // test skips validation, so the build itself must find this out from the landmarks.
  for (const char* mapping : {"f2(landmarks=30)", "f3(landmarks=30, dimensions=5)"}) {
    EXPECT_THAT(
        Build(SpecOf(mapping, "poly(degree=2, coef0=-1)"), x).status(),
        IsError(StatusCode::kFailedPrecondition, "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "kernel"));
  }
  EXPECT_TRUE(Build(SpecOf("f1(landmarks=30)", "poly(degree=2, coef0=-1)"), x).ok());
}

TEST(VersionBuildErrorsTest, ZeroKernel) {
  const Matrix<double> x = NormalRows({.rows = 100, .cols = 3, .seed = 4});
  EXPECT_THAT(Build(SpecOf("f2(landmarks=30)", "0*linear()"), x).status(),
              IsError(StatusCode::kFailedPrecondition, "KERNEL_ZERO", "kernel"));
  EXPECT_THAT(Build(SpecOf("f2(landmarks=30)", "linear()"), Matrix<double>(100, 3)).status(),
              IsError(StatusCode::kFailedPrecondition, "KERNEL_ZERO", "kernel"));
}

// Builds from inputs of up to 1e300. Each combination must either give a version whose numbers are
// finite, or end in an error about the caller's input. No build may crash or give a version that
// serves NaN.
TEST(VersionBuildErrorsTest, HugeInputsNeverGiveAVersionOfNonsense) {
  Matrix<double> x = NormalRows({.rows = 300, .cols = 3, .seed = 5});
  for (const double factor : {1e18, 1e20, 1e60, 1e150, 1e300}) {
    Matrix<double> huge = x.Clone();
    for (int64_t i = 0; i < x.size(); ++i) huge.data()[i] *= factor;
    for (const char* kernel : {"rbf(gamma=scale)", "rbf(gamma=median)", "rbf(gamma=1)", "linear()",
                               "poly(degree=5, coef0=1)"}) {
      for (const char* type : {"float32", "float64"}) {
        for (const bool standardize : {false, true}) {
          const BuildSpec spec = SpecOf(std::string("f2(landmarks=30, serving_type=") + type + ")",
                                        kernel, standardize);
          const absl::StatusOr<BuiltVersion> built = Build(spec, huge);
          if (built.ok()) {
            EXPECT_TRUE(std::isfinite(*built->certificate.trace_residual)) << spec.ToText();
            ASSERT_TRUE(built->certificate.kernel_error.has_value());
            EXPECT_TRUE(std::isfinite(built->certificate.kernel_error->max)) << spec.ToText();
            EXPECT_TRUE(std::isfinite(built->certificate.serving_error->max)) << spec.ToText();
          } else {
            EXPECT_TRUE(built.status().code() == StatusCode::kFailedPrecondition ||
                        built.status().code() == StatusCode::kInvalidArgument)
                << factor << spec.ToText() << built.status();
            EXPECT_TRUE(DetailOf(built.status()).has_value());
            EXPECT_NE(ReasonOf(built.status()), "KERNEL_NOT_POSITIVE_SEMIDEFINITE")
                << factor << spec.ToText() << built.status();
          }
        }
      }
    }
  }
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = i % 2 == 0 ? 1e300 : -1e300;
  EXPECT_THAT(Build(SpecOf("f2(landmarks=30)", "rbf(gamma=1)"), x).status(),
              IsError(StatusCode::kInvalidArgument, "VALUES_TOO_LARGE", "examples"));
  // Such tiny numbers cannot be scaled to a deviation of 1. Without standardisation, all rows are
  // the same point.
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = i % 2 == 0 ? 1e-310 : -1e-310;
  EXPECT_THAT(Build(SpecOf("f2(landmarks=30)", "rbf(gamma=1)", true), x).status(),
              IsError(StatusCode::kInvalidArgument, "VALUES_TOO_SMALL", "examples"));
  EXPECT_EQ(Build(SpecOf("f2(landmarks=30)", "rbf(gamma=1)"), x)->certificate.rank, 1);
}

TEST(VersionBuildErrorsTest, MonitorStopsTheBuildAtEveryCheckpoint) {
  const Matrix<double> x = NormalRows({.rows = 4000, .cols = 4, .seed = 6});
  for (const char* mapping :
       {"f1(landmarks=50)", "f2(landmarks=150)", "f3(landmarks=150, dimensions=20)",
        "kpca(landmarks=80, dimensions=2)", "kpca(landmarks=80, dimensions=2, sparsify=2)"}) {
    const BuildSpec spec = SpecOf(mapping, "rbf(gamma=scale)", true);
    const auto run = [&](RecordingMonitor& monitor) {
      StreamSample sample(spec, 4);
      EXPECT_TRUE(sample.Add(WireRows(x)).ok());
      return BuildVersion(spec, std::move(sample), monitor).status();
    };
    RecordingMonitor whole;
    ASSERT_TRUE(run(whole).ok());
    const auto checkpoints = static_cast<int64_t>(whole.fractions.size());
    EXPECT_GE(checkpoints, 5);
    for (int64_t stop = 0; stop < checkpoints; ++stop) {
      RecordingMonitor monitor(stop);
      EXPECT_EQ(run(monitor), absl::CancelledError("stop")) << mapping << " at " << stop;
      EXPECT_EQ(static_cast<int64_t>(monitor.fractions.size()), stop + 1);
    }
  }
}

TEST(VersionBuildErrorsTest, ProgressRisesFromZeroToOneThroughThePhases) {
  const Matrix<double> x = NormalRows({.rows = 6000, .cols = 4, .seed = 7});
  // The type is given: where a learner loses by float32, a build in both repeats the phases.
  for (const char* mapping : {"f1(landmarks=50)", "f2(landmarks=600, serving_type=float32)",
                              "f3(landmarks=600, dimensions=20, serving_type=float32)"}) {
    const BuildSpec spec = SpecOf(mapping, "rbf(gamma=scale)");
    StreamSample sample(spec, 4);
    ASSERT_TRUE(sample.Add(WireRows(x)).ok());
    RecordingMonitor monitor;
    ASSERT_TRUE(BuildVersion(spec, std::move(sample), monitor).ok());
    EXPECT_EQ(monitor.fractions.front(), 0);
    EXPECT_EQ(monitor.fractions.back(), 1);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end())) << mapping;
    const std::vector<std::string> kOrder = {"sample", "gram", "factor", "certificate", "encode"};
    std::vector<std::ptrdiff_t> order;
    for (const std::string& phase : monitor.phases) {
      order.push_back(std::find(kOrder.begin(), kOrder.end(), phase) - kOrder.begin());
    }
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << mapping;
    EXPECT_LT(order.back(), 5);
  }
}

// A row of zeros has no direction: no scaling helps, and the message says what does. Landmarks are
// the first to be seen; held-out rows only if no landmark is 0, and float32 is not to blame there.
TEST(VersionBuildErrorsTest, RowsOfZerosCannotBeNormalisedAndTheRemedyIsNotToScale) {
  Matrix<double> x = NormalRows({.rows = 400, .cols = 3, .seed = 5});
  for (int64_t i = 0; i < x.rows(); i += 2) std::fill_n(x.row(i), 3, 0.0);
  for (const char* mapping :
       {"f1(landmarks=20)", "f2(landmarks=20)", "f3(landmarks=20, dimensions=5)",
        "f2(landmarks=auto(residual=0.1))"}) {
    for (const char* kernel : {"normalize(linear())", "normalize(poly(degree=2))"}) {
      SCOPED_TRACE(std::string(mapping) + " " + kernel);
      EXPECT_THAT(std::string(Build(SpecOf(mapping, kernel), x).status().message()),
                  AllOf(HasSubstr("is 0 for a row of zeros: leave such rows out"),
                        HasSubstr("normalize(poly(degree=1, coef0=1))")));
    }
    // The remedies are true.
    EXPECT_TRUE(Build(SpecOf(mapping, "normalize(poly(degree=1, coef0=1))"), x).ok()) << mapping;
    EXPECT_TRUE(Build(SpecOf(mapping, "cosine()"), x).ok()) << mapping;
  }
  // One zero row in the whole stream, which is no landmark.
  Matrix<double> one = NormalRows({.rows = 400, .cols = 3, .seed = 6});
  for (int64_t i = 200; i < 400; ++i) std::fill_n(one.row(i), 3, 0.0);
  const BuildSpec given = SpecOf("f2(landmarks=5, policy=given)", "normalize(linear())");
  EXPECT_THAT(std::string(Build(given, one).status().message()), HasSubstr("leave such rows out"));
  // Any other kernel has the remedy of large numbers.
  const Matrix<double> large = NormalRows({.rows = 400, .cols = 3, .seed = 7});
  Matrix<double> huge = large.Clone();
  for (int64_t i = 0; i < huge.size(); ++i) huge.data()[i] *= 1e100;
  const absl::Status overflow =
      Build(SpecOf("f2(landmarks=20, serving_type=float64)", "poly(degree=4)"), huge).status();
  EXPECT_THAT(std::string(overflow.message()),
              AllOf(Not(HasSubstr("row of zeros")), HasSubstr("standardize the inputs")));
}

}  // namespace
}  // namespace phimap::testing
