// Whether a version is good, in one line.
#ifndef PHIMAP_CLIENT_CLI_VERSION_VERDICT_H_
#define PHIMAP_CLIENT_CLI_VERSION_VERDICT_H_

#include <string>

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

struct VersionVerdict {
  enum class Grade { kGood, kFair, kPoor, kUnknown };
  Grade grade = Grade::kUnknown;
  // Begins with the grade: "good: …", "fair: …", "poor: …" or "not judged: …", and says why.
  std::string text;
};

// What the certificate says of a version:
// - of F2 on inputs that are not projected, the share of the kernel's mass on held-out rows that
// the
//   features do not capture: good up to 5 %, fair up to 20 %;
// - of all others the mean kernel error, of the largest K(x,x): good up to 2 %, fair up to 10 %.
// What
//   their landmarks' span misses says nothing of what a projection before or after it loses.
// The grades of the two are of different things and not to be compared.
// A warning of the certificate makes it fair at best. How well a learner does is not said here:
// `phimap evaluate` measures that. Pure.
VersionVerdict VerdictOf(const v1::Version& version);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VERSION_VERDICT_H_
