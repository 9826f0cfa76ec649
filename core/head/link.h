// The link of a head: how scores become probabilities.
//
// With two classes there is one score s, which is over 0 for class 1, and
//
//     P[class 1] = 1/(1 + exp(−(slope·s + offset)))
//
// (Platt, "Probabilistic outputs for support vector machines", 1999). With c >= 3 classes there are
// c scores, and P[class j] is proportional to exp(slope·s_j), where 1/slope is the temperature
// (Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017). A head for
// numbers has no link.
//
// What is fitted. Both links minimise the mean of −Σ_j t_j·ln p_j over rows that the scores were
// not fitted on. The target t of a row is close to 1 for its own class and close to 0 for others,
// but is neither: n rows without a mistake do not show that there are none, and with targets of 0
// and 1 the slope of scores that make no mistake would be infinite. With two classes the targets
// are Platt's, (n₁ + 1)/(n₁ + 2) for the n₁ rows of class 1 and 1/(n₀ + 2) for the n₀ others. With
// more classes a row's own class has (n + 1)/(n + 2), the rule of succession, and the others share
// the rest. At the minimum Σ(p − t) = 0 (two classes) and Σ(p − t)·s = 0: predicted probabilities
// and targets have one mean, and one covariance with the scores.
//
// Probabilities have the same bits on every platform.
#ifndef PHIMAP_CORE_HEAD_LINK_H_
#define PHIMAP_CORE_HEAD_LINK_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/linalg/matrix.h"

namespace phimap {

struct Link {
  enum class Kind : uint8_t { kNone = 0, kPlatt = 1, kTemperature = 2 };
  Kind kind = Kind::kNone;
  // Over 0, so that the order of the classes is that of the scores.
  double slope = 1;
  double offset = 0;
};

// Computes the probabilities of one row's classes; they add up to 1 within rounding, and none is
// NaN whatever finite scores come. REQUIRES: the link is not kNone, its slope is over 0, and both
// numbers are finite; for kPlatt, one score and two probabilities; for kTemperature, as many scores
// as probabilities.
void Probabilities(const Link& link, absl::Span<const double> scores,
                   absl::Span<double> probabilities);

// Fits a link, by Newton's method, to the scores of rows that the scores were not fitted on. The
// loss is convex, and depends on units of the scores in no way: scores that are multiplied by a
// number give a slope that is divided by it. The slope is at least 1e-6 over the scores' spread,
// also where the scores are higher for the wrong class. Where all scores are equal they say
// nothing; the probabilities are then the targets' mean, or equal. Deterministic.
//
// Shapes: scores n×1 for two classes and n×c for more; n labels in 0 … class_count − 1.
// Accuracy: the mean of (p − t)·u is under 1e-9 for u = 1 and for u the scores over their spread,
//           unless the slope is the least one.
// Cost: some 20 passes of 20 ns for each score. REQUIRES: n >= 1; class_count >= 2; finite scores.
Link FitLink(ConstMatrixView<double> scores, absl::Span<const int32_t> labels, int32_t class_count);

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_LINK_H_
