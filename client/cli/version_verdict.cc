#include "client/cli/version_verdict.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/number_text.h"

namespace phimap::cli {
namespace {

using Grade = VersionVerdict::Grade;

Grade GradeOf(double share, double good, double fair) {
  // NaN is no good.
  return share <= good ? Grade::kGood : share <= fair ? Grade::kFair : Grade::kPoor;
}

const char* GradeName(Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "good";
    case Grade::kFair:
      return "fair";
    case Grade::kPoor:
      return "poor";
    case Grade::kUnknown:
      break;
  }
  return "not judged";
}

// Whether the features are the whole of what the landmarks' span keeps: nothing is lost before it,
// by projected inputs, or after it, by projected features.
bool IsSpanOfLandmarks(const v1::Version& version) {
  return absl::StartsWith(version.mapping_text(), "f2(") &&
         !absl::StrContains(version.mapping_text(), "input_dimensions=");
}

// The grade of what was measured, and what that was.
VersionVerdict Measured(const v1::Version& version) {
  const v1::Certificate& certificate = version.certificate();
  if (certificate.has_held_out_trace_residual() && IsSpanOfLandmarks(version)) {
    const double share = certificate.held_out_trace_residual();
    const Grade grade = GradeOf(share, 0.05, 0.2);
    return {grade, absl::StrFormat("%.2f %% of the kernel's mass on new rows is not captured%s",
                                   100 * share,
                                   grade == Grade::kGood ? "" : "; more landmarks capture more")};
  }
  if (certificate.has_kernel_error() && certificate.kernel_error().scale() > 0) {
    const v1::Certificate::Error& error = certificate.kernel_error();
    const double share = error.mean() / error.scale();
    const Grade grade = GradeOf(share, 0.02, 0.1);
    return {grade, absl::StrFormat("the kernel is off by %.2f %% on average%s", 100 * share,
                                   grade == Grade::kGood ? "" : "; more dimensions are closer")};
  }
  if (absl::StartsWith(version.mapping_text(), "f1(")) {
    return {Grade::kUnknown,
            "F1 does not stand for the kernel's values; phimap evaluate measures a learner"};
  }
  return {Grade::kUnknown,
          "too few rows were held out to measure on; phimap evaluate measures a learner"};
}

}  // namespace

VersionVerdict VerdictOf(const v1::Version& version) {
  VersionVerdict verdict = Measured(version);
  const int warnings = version.certificate().warnings_size();
  if (warnings > 0) {
    if (verdict.grade == Grade::kGood) verdict.grade = Grade::kFair;
    absl::StrAppend(&verdict.text, "; ", warnings,
                    warnings == 1 ? " warning below" : " warnings below");
  }
  verdict.text = absl::StrCat(GradeName(verdict.grade), ": ", verdict.text);
  return verdict;
}

}  // namespace phimap::cli
