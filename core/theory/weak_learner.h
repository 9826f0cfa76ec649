// The weak learner of Blum 2005, Theorem 1: a random separator.
#ifndef PHIMAP_CORE_THEORY_WEAK_LEARNER_H_
#define PHIMAP_CORE_THEORY_WEAK_LEARNER_H_

#include <cstdint>

namespace phimap {

// A lower bound on the probability that a separator drawn uniformly has error at most 1/2 − γ/4,
// where all but a share α of the examples have margin γ; 0 where the proof gives nothing.
//
// The paper says Ω(γ). Proof: given h·w >= 0 (probability 1/2) the expected error is at most (1 −
// α)(1/2 − γ/π) + α; Markov's inequality for the error being over 1/2 − γ/4 then leaves (1/π −
// 1/4)γ − α(1/2 + γ/π), 0.0683099 γ at α = 0.
//
// Requires: 0 < margin <= 1, 0 <= alpha < 1.
double WeakLearnerSuccess(double margin, double alpha);

// Number of draws that contain one such separator with probability 1 − delta, if each succeeds with
// probability `success`. REQUIRES: 1e-12 <= success < 1, 0 < delta < 1.
int64_t WeakLearnerDraws(double success, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_WEAK_LEARNER_H_
