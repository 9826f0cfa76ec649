#include <string>

#include "client/cli/version_verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Of these shares: not captured by the landmarks' span, and the mean kernel error.
v1::Version Of(const std::string& mapping, double not_captured, double kernel_error) {
  v1::Version version;
  version.set_mapping_text(mapping);
  version.mutable_certificate()->set_held_out_trace_residual(not_captured);
  version.mutable_certificate()->mutable_kernel_error()->set_mean(kernel_error);
  version.mutable_certificate()->mutable_kernel_error()->set_scale(1);
  return version;
}

TEST(VersionVerdictTest, F2IsJudgedByWhatItsSpanMisses) {
  EXPECT_THAT(VerdictOf(Of("f2(landmarks=5)", 0.05, 0.3)).text,
              AllOf(StartsWith("good: 5.00 %"), HasSubstr("not captured")));
  EXPECT_THAT(VerdictOf(Of("f2(landmarks=5)", 0.0501, 0)).text, StartsWith("fair: "));
  EXPECT_THAT(VerdictOf(Of("f2(landmarks=5)", 0.201, 0)).text, StartsWith("poor: "));
}

TEST(VersionVerdictTest, WhatIsProjectedIsJudgedByItsKernelError) {
  for (const char* mapping : {"f3(landmarks=500, dimensions=1)",
                              "f2(landmarks=500, input_dimensions=2)", "fourier(dimensions=2)"}) {
    EXPECT_THAT(VerdictOf(Of(mapping, 0.0002, 0.239)).text, StartsWith("poor: the kernel is off"));
    EXPECT_THAT(VerdictOf(Of(mapping, 0.9, 0.02)).text, StartsWith("good: the kernel is off"));
  }
}

TEST(VersionVerdictTest, AWarningMakesItFairAtBest) {
  v1::Version version = Of("f2(landmarks=5)", 0, 0);
  version.mutable_certificate()->add_warnings("w");
  EXPECT_THAT(VerdictOf(version).text, AllOf(StartsWith("fair: "), HasSubstr("1 warning below")));
}

TEST(VersionVerdictTest, WhatWasNotMeasuredIsNotJudged) {
  v1::Version version;
  version.set_mapping_text("f1(landmarks=5)");
  EXPECT_THAT(VerdictOf(version).text, StartsWith("not judged: F1"));
  version.set_mapping_text("f2(landmarks=5)");
  EXPECT_THAT(VerdictOf(version).text, StartsWith("not judged: too few rows"));
}

}  // namespace
}  // namespace phimap::cli
