// The binomial law: how many draws until k of them succeed.
#ifndef PHIMAP_CORE_THEORY_BINOMIAL_H_
#define PHIMAP_CORE_THEORY_BINOMIAL_H_

#include <cstdint>
#include <optional>

namespace phimap {

// ln P[Bin(n, p) = k].
//
// Requires: 0 <= k <= n <= 2^53, 0 < p < 1.
// Accuracy: absolute error under 1e-11 where the result is over −100; 1e-13 of the result below. No
//           factorial is formed: the deviations from Stirling's formula and from the mean are
//           summed, none of which cancels.
double LogBinomial(int64_t k, int64_t n, double p);

// P[Bin(n, p) < k].
//
// Requires: 0 <= n <= 2^53, 0 < p < 1.
// Accuracy: relative error under 1e-10 for results over 1e-300, and also for 1 − result.
// Cost:     about 10·√(n p (1 − p)) terms of 5 ns. Pure, thread-safe.
double BinomialBelow(int64_t k, int64_t n, double p);

// The smallest n with P[Bin(n, p) < k] <= delta: n draws, each a success with probability at least
// p, give k successes with probability at least 1 − delta. The probability falls with n, so a
// monotone search finds it. nullopt over 2^53.
//
// Requires: k >= 1, 0 < p < 1, 0 < delta < 1.
std::optional<int64_t> TrialsFor(int64_t k, double p, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_BINOMIAL_H_
