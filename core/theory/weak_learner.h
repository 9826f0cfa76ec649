// The weak learner of Blum 2005, Theorem 1: a random separator.
#ifndef PHIMAP_CORE_THEORY_WEAK_LEARNER_H_
#define PHIMAP_CORE_THEORY_WEAK_LEARNER_H_

#include <cstdint>

namespace phimap {

// Returns a lower bound on the probability that a separator drawn uniformly at random has an error
// of at most 1/2 − γ/4. All examples except a share α have margin γ (`margin`). Returns 0 if the
// proof gives no positive bound.
//
// The paper says only Ω(γ). The proof: let w be the separator with margin γ, and h the drawn
// separator. With probability 1/2, h·w >= 0. If so, the expected error of h is at most (1 − α)(1/2
// − γ/π) + α, and Markov's inequality applies to it. Together with the factor 1/2, this gives the
// bound (1/π − 1/4)γ − α(1/2 + γ/π). For α = 0 it is 0.0683099 γ.
//
// Requires: 0 < margin <= 1, 0 <= alpha < 1.
double WeakLearnerSuccess(double margin, double alpha);

// Returns the number of draws of which, with probability 1 − delta, at least one is a separator
// with error at most 1/2 − γ/4. `success` is the probability that a single draw is such a
// separator. REQUIRES: 1e-12 <= success < 1, 0 < delta < 1.
int64_t WeakLearnerDraws(double success, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_WEAK_LEARNER_H_
