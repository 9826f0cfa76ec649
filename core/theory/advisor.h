// The advisor computes dimensions from margin, error and confidence, by every theorem of the
// papers.
//
// The lines come in this order. Subjects and tiers never change, so that programs can rely on them:
//   F1                  literal, derived        Balcan, Blum, Vempala 2006, Corollary 1
//   F2                  literal, derived        Theorem 1
//   F3                  literal, derived, exact Theorem 3
//   F3, perfect sample  literal, derived, exact Corollary 2
//   projection          literal, exact          Blum 2005, Theorem 3
//   length              literal, derived        BBV Theorem 2; Achlioptas, McSherry, Schölkopf 2001
//   angle               literal                 Shi et al. 2012, Theorem 5
//   data set            literal, derived        Theorem 6
//   classes             literal                 Theorem 8
//   one parameter       literal                 Theorem 9
//   projected kernel    literal                 Achlioptas, McSherry, Schölkopf 2001, Theorem 6
//   random Fourier      literal, derived        Cornell lecture notes on kernels
//   weak learner        literal, derived        Blum 2005, Theorem 1
// A statement that a paper makes only with O() or Ω() gets a line without a number.
//
// Example:
//   PHIMAP_ASSIGN_OR_RETURN(const Advice advice,
//                           Advise({.margin = 0.2, .error = 0.1, .confidence = 0.95}));
//   // advice.proposal is "f2(landmarks=1150)".
#ifndef PHIMAP_CORE_THEORY_ADVISOR_H_
#define PHIMAP_CORE_THEORY_ADVISOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/theory/projection_bounds.h"

namespace phimap {

struct AdviceQuery {
  // γ, the margin as a cosine. Let w be the separator that the kernel is believed to have, and x an
  // example with label y = ±1. Then γ is a lower bound on y·w·φ(x)/(‖w‖‖φ(x)‖) for all such x. If
  // your margin was not divided by ‖φ(x)‖, or if its separator has an offset, divide it by R = max
  // ‖φ(x)‖. From 1e-4 to 1.
  double margin = 0;
  // ε, the error that the mapping may add. 1e-6 <= ε < 1, and alpha + error < 1.
  double error = 0;
  // 1 − δ, the probability that the statement holds (not δ). 1e-9..1 − 1e-9.
  double confidence = 0;
  // α, the share of the examples that miss the margin. 0 <= α < 1.
  double alpha = 0;
  // Number of points of a data set for all of which a statement must hold at once; 0 if unset. Up
  // to 10^15.
  int64_t points = 0;
  // Number of classes, 2..10^6; 0 if unset.
  int64_t classes = 0;
  // e, the relative error of squared lengths that a projection may cause, 1e-6..1 − 1e-6. If 0, e
  // is chosen so that it halves the margin, and is 0.1 for statements without a margin.
  double distortion = 0;
  // a, the error of a kernel value that random Fourier features may cause, 1e-6..1. If 0, a is 0.1.
  double kernel_error = 0;
  // Maximum number of landmarks of a mapping that can be built; 0 if unlimited.
  int64_t max_landmarks = 0;

  double delta() const { return 1 - confidence; }
  // Returns OK, or INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) with the field, the actual value, the
  // range, and the remedy.
  absl::Status Validate() const;
};

// The note of a line whose number of features or landmarks is over 2^53.
inline constexpr char kTooManyToBuild[] = "over 2^53: impossible to build";

// Subject of a line. The values are those of the API.
enum class AdviceSubject {
  kF1 = 1,
  kF2 = 2,
  kF3 = 3,
  kF3PerfectSample = 4,
  kProjection = 5,
  kLength = 6,
  kAngle = 7,
  kDataSet = 8,
  kClasses = 9,
  kOneParameter = 10,
  kProjectedKernel = 11,
  kRandomFourier = 12,
  kWeakLearner = 13,
};

// A theorem applied to the query. A number that the theorem does not give is absent, and `note`
// gives the reason.
struct AdviceLine {
  AdviceSubject subject = AdviceSubject::kF1;
  // Paper and theorem.
  std::string source;
  Tier tier = Tier::kLiteral;
  // For F1, F2 and F3: the number of uniform landmarks.
  std::optional<int64_t> landmarks;
  // Number of features of the mapping, or of rows of the projection.
  std::optional<int64_t> dimensions;
  // The margin that remains.
  std::optional<double> margin;
  // The error of the separator that exists after the mapping: α + ε.
  std::optional<double> error;
  // The relative error e of squared lengths that the line assumes.
  std::optional<double> distortion;
  // For the weak learner: the probability that a draw succeeds, and the number of draws of which at
  // least one succeeds with the given confidence.
  std::optional<double> success;
  std::optional<int64_t> draws;
  std::string note;
};

struct Advice {
  std::vector<AdviceLine> lines;
  // Whether F3 has fewer features than F2, by the sharpest tier of each.
  bool f3_helps = false;
  // The error below which F3 has fewer features, at the same margin and confidence; to two digits.
  double f3_helps_below_error = 0;
  // One or two sentences that say what to do. `verdict` and `lines` say why.
  std::string to_do;
  // One or two sentences that say whether to use F2 or F3, and why.
  std::string verdict;
  // The mapping to build, as in "f2(landmarks=215)"; empty when it has more than max_landmarks.
  std::string proposal;
  // If there is no proposal: the mapping whose build measures how many landmarks suffice.
  std::string to_measure;
};

// Returns all lines and the verdict. Errors: as AdviceQuery::Validate. Cost: 10 to 200 ms, the most
// at the smallest margins; do not call on an RPC thread. Pure.
absl::StatusOr<Advice> Advise(const AdviceQuery& query);

// Return the parts of the advice. REQUIRES: a valid query.
std::vector<AdviceLine> LandmarkAdvice(const AdviceQuery& query);    // F1, F2, F3
std::vector<AdviceLine> ProjectionAdvice(const AdviceQuery& query);  // the rest
// Fills in everything but the lines.
void DecideF2OrF3(const AdviceQuery& query, Advice& advice);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_ADVISOR_H_
