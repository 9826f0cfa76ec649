// Whether a version is good, at a glance: a grade, its reason and what to do, from the certificate
// alone. The server, the command line, the Python client and alerts all show this verdict.
#ifndef PHIMAP_CORE_CERTIFICATE_VERDICT_H_
#define PHIMAP_CORE_CERTIFICATE_VERDICT_H_

#include <string>

#include "core/certificate/certificate.h"

namespace phimap {

// The largest distances of smoothers (JudgedDistance) of a good and of a fair version.
// The laboratory's experiment `verdicts` (docs/lab.md) measures on some 300 mappings of six data
// sets what they mean: of versions that are called good at most one in twenty costs ridge
// regression more than a point of error against the exact kernel, and most versions that cost
// nothing are called good. A fair one may cost some points.
inline constexpr double kGoodDistance = 0.1;
inline constexpr double kFairDistance = 0.25;
// The largest left_out_distances of a good and of a fair version. At 1 the features predict rows
// that were left out of the training no better than constant ones do. Where few rows carry the
// kernel it says nothing: λ = 1 leaves the other rows' directions nearly unused.
inline constexpr double kGoodLeftOutDistance = 0.6;
inline constexpr double kFairLeftOutDistance = 1;
// The same for projections of inputs, which are judged by the 95 % quantile of the relative error
// of a squared distance. By convention, not fitted.
inline constexpr double kGoodDistanceError = 0.2;
inline constexpr double kFairDistanceError = 0.4;
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
  // The reason with its number, a clause without a full stop: "a tuned learner's predictions
  // differ by 3.2 % from those on the kernel". Never empty.
  std::string reason;
  // What to do about it; empty for good versions.
  std::string advice;

  // "good", "fair", "poor" or "not judged".
  std::string grade_name() const;
  // "fair: a learner's …; more landmarks reduce it".
  std::string ToText() const;
};

// Whether so few held-out rows carry the kernel's values that a sum over rows says nothing of the
// others. Rows that weigh alike are few in a small sample too, so their share also counts.
bool FewRowsCarry(const Certificate& certificate);

// The distance that a version is judged by: tuned_distance(), or largest_distance() where few rows
// carry the kernel and it is over kFairDistance. A learner that fits the other rows needs a λ far
// below the mean eigenvalue, at which nothing is measured; but features that miss directions of the
// heavy rows, which λ = 1 shows, miss those of the others too. REQUIRES: the certificate has a
// fidelity.
double JudgedDistance(const Certificate& certificate);

// Judges a version by what a linear learner on its features loses against a kernel machine: the
// distance of smoothers on held-out rows, for a learner that tunes its regularization. A mean of
// errors would not do, because it is blind to constants, which intercepts absorb, and to rows with
// small kernel values. Features that are constant are never good. Versions whose features are for
// something else than inner products, which these distances do not measure, are not judged, and the
// reason says what they are judged by. Pure.
Verdict VerdictOf(const Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_VERDICT_H_
