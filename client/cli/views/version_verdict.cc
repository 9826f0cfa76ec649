#include "client/cli/views/version_verdict.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/views/number_text.h"

namespace phimap::cli {
namespace {

using Grade = VersionVerdict::Grade;

Grade GradeOf(double share, double good, double fair) {
  // A NaN is graded as poor.
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

// With fewer held-out rows, a certificate has no measurements.
constexpr int64_t kLeastHeldOutRows = 20;

// Whether the features are the full projection onto the landmarks' span. A further projection, of
// inputs or features, loses more than the residual mass shows.
bool IsSpanOfLandmarks(const v1::Version& version) {
  return !absl::StrContains(version.mapping_text(), "dimensions=");
}

// The grade of the measurement, and its text.
VersionVerdict Measured(const v1::Version& version) {
  const v1::Certificate& certificate = version.certificate();
  if (certificate.has_held_out_trace_residual() && IsSpanOfLandmarks(version)) {
    const double share = certificate.held_out_trace_residual();
    const Grade grade = GradeOf(share, 0.05, 0.2);
    return {grade, absl::StrFormat("residual mass %.2f %% on new rows%s", 100 * share,
                                   grade == Grade::kGood ? "" : "; more landmarks reduce it")};
  }
  if (certificate.has_kernel_error() && certificate.kernel_error().scale() > 0) {
    const v1::Certificate::Error& error = certificate.kernel_error();
    const double share = error.mean() / error.scale();
    const Grade grade = GradeOf(share, 0.02, 0.1);
    return {grade, absl::StrFormat("mean kernel error %.2f %% of the largest K(x,x)%s", 100 * share,
                                   grade == Grade::kGood ? "" : "; more dimensions reduce it")};
  }
  if (certificate.held_out_rows() >= kLeastHeldOutRows) {
    return {Grade::kUnknown,
            "no kernel error applies to this mapping; phimap evaluate measures a learner"};
  }
  return {Grade::kUnknown,
          "too few held-out rows to measure on; phimap evaluate measures a learner"};
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
