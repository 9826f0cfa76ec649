// Whether a version is good, in one line.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_VERSION_VERDICT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_VERSION_VERDICT_H_

#include <string>

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

struct VersionVerdict {
  enum class Grade { kGood, kFair, kPoor, kUnknown };
  Grade grade = Grade::kUnknown;
  // Begins with the grade, "good: …", "fair: …", "poor: …" or "not judged: …", followed by the
  // reason.
  std::string text;
};

// Grades a version by its certificate:
// - If the features are the whole projection onto the landmarks' span, without another projection
//   before or after it: by the residual mass, good up to 5 %, fair up to 20 %.
// - If they approximate the kernel in another way: by the mean kernel error as a share of the
//   largest K(x,x), good up to 2 %, fair up to 10 %. The residual mass would leave out what a
//   projection loses.
// The two kinds of grades measure different things and cannot be compared. A warning of the
// certificate makes the grade fair at best. `phimap evaluate` measures how well a learner does,
// which the verdict does not say. Pure.
VersionVerdict VerdictOf(const v1::Version& version);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_VERSION_VERDICT_H_
