// The advisor computes dimensions from margin, error and confidence, by every theorem of the
// papers.
//
// The lines come in this order. `what` and the tiers never change, so that programs can rely on
// them:
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

#include <vector>

#include "absl/status/statusor.h"
#include "core/theory/advice.h"

namespace phimap {

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
