#include <string>

#include "client/cli/views/version_verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns a version with the given residual mass and mean kernel error.
v1::Version Of(const std::string& mapping, double residual_mass, double kernel_error) {
  v1::Version version;
  version.set_mapping_text(mapping);
  version.mutable_certificate()->set_held_out_trace_residual(residual_mass);
  version.mutable_certificate()->mutable_kernel_error()->set_mean(kernel_error);
  version.mutable_certificate()->mutable_kernel_error()->set_scale(1);
  return version;
}

TEST(VersionVerdictTest, FeaturesThatAreAllOfTheSpanAreJudgedByTheirResidualMass) {
  EXPECT_THAT(VerdictOf(Of("f2(landmarks=5)", 0.05, 0.3)).text,
              StartsWith("good: residual mass 5.00 %"));
  EXPECT_THAT(VerdictOf(Of("f2(landmarks=5)", 0.0501, 0)).text, StartsWith("fair: "));
  EXPECT_THAT(VerdictOf(Of("f2(landmarks=5)", 0.201, 0)).text, StartsWith("poor: "));
}

TEST(VersionVerdictTest, WhatIsProjectedIsJudgedByItsKernelError) {
  for (const char* mapping : {"f3(landmarks=500, dimensions=1)",
                              "f2(landmarks=500, input_dimensions=2)", "fourier(dimensions=2)"}) {
    EXPECT_THAT(VerdictOf(Of(mapping, 0.0002, 0.239)).text, StartsWith("poor: mean kernel error"));
    EXPECT_THAT(VerdictOf(Of(mapping, 0.9, 0.02)).text, StartsWith("good: mean kernel error"));
  }
}

TEST(VersionVerdictTest, AWarningMakesItFairAtBest) {
  v1::Version version = Of("f2(landmarks=5)", 0, 0);
  version.mutable_certificate()->add_warnings("w");
  EXPECT_THAT(VerdictOf(version).text, AllOf(StartsWith("fair: "), HasSubstr("1 warning below")));
}

TEST(VersionVerdictTest, WhatWasNotMeasuredIsNotJudged) {
  v1::Version version;
  version.set_mapping_text("m(landmarks=5)");
  version.mutable_certificate()->set_held_out_rows(20);
  EXPECT_THAT(VerdictOf(version).text, StartsWith("not judged: no kernel error applies"));
  version.mutable_certificate()->set_held_out_rows(19);
  EXPECT_THAT(VerdictOf(version).text, StartsWith("not judged: too few held-out rows"));
}

}  // namespace
}  // namespace phimap::cli
