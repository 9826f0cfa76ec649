// Whether a version is good, at a glance: a grade, its reason and what to do, from the certificate
// alone. The server, the command line, the Python client and alerts all show this verdict.
#ifndef PHIMAP_CORE_CERTIFICATE_VERDICT_H_
#define PHIMAP_CORE_CERTIFICATE_VERDICT_H_

#include <string>

#include "core/certificate/certificate.h"

namespace phimap {

// The largest distances of smoothers (Fidelity::largest_distance) of a good and of a fair version.
// Fitted by the laboratory's experiment `verdicts` (docs/lab.md) on some 300 mappings of six data
// sets, so that at most one in twenty that is called good costs ridge regression more than a
// point of error against the exact kernel. They hold on these sets together: fitted without letter
// they would fail on letter.
inline constexpr double kGoodDistance = 0.2;
inline constexpr double kFairDistance = 0.4;
// With fewer held-out rows nothing is judged.
inline constexpr int64_t kMinVerdictRows = 30;

struct Verdict {
  enum class Grade { kNotJudged, kGood, kFair, kPoor };
  // Why the grade is not good, or why there is none. Decides the advice.
  enum class Cause {
    kNone,
    // Nothing can be said: too few held-out rows, or an artifact of an early release.
    kTooFewRows,
    kNotMeasured,
    // The features are for something else than inner products (Aim).
    kOtherAim,
    // All kernel values are equal up to rounding, so there is nothing to learn.
    kConstantKernel,
    // float32 cut off what float64 would have kept.
    kServingType,
    // A few rows carry the kernel's values.
    kFewRowsCarry,
    // The features are too few to stand for the kernel.
    kTooFewFeatures,
  };

  Grade grade = Grade::kNotJudged;
  Cause cause = Cause::kNone;
  // The reason with its number, a clause without a full stop: "a learner's predictions differ
  // by 3.2 % from those on the kernel". Never empty.
  std::string reason;
  // What to do about it; empty for good versions.
  std::string advice;

  // "good", "fair", "poor" or "not judged".
  std::string grade_name() const;
  // "fair: a learner's …; more landmarks reduce it".
  std::string ToText() const;
};

// Judges a version by what a linear learner on its features loses against a kernel machine: the
// largest distance of smoothers on held-out rows. A mean of errors would not do, because it is
// blind to constants, which intercepts absorb, and to rows with small kernel values. Features that
// are constant are never good. Versions whose features are for something else than inner products,
// which these distances do not measure, are not judged, and the reason says what they are judged
// by. Pure.
Verdict VerdictOf(const Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_VERDICT_H_
