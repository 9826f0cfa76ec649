// The binomial law: how many draws until k of them succeed.
#ifndef PHIMAP_CORE_THEORY_BINOMIAL_H_
#define PHIMAP_CORE_THEORY_BINOMIAL_H_

#include <cstdint>
#include <optional>

namespace phimap {

// Returns ln P[Bin(n, p) = k].
//
// Requires: 0 <= k <= n <= 2^53, 0 < p < 1.
// Accuracy: absolute error under 1e-11 for results over −100, relative error under 1e-13 for
//           results below −100. No factorial is computed. Instead, the deviations from Stirling's
//           formula and from the mean are added. No digits cancel in these.
double LogBinomial(int64_t k, int64_t n, double p);

// Returns P[Bin(n, p) < k].
//
// Requires: 0 <= n <= 2^53, 0 < p < 1.
// Accuracy: relative error under 1e-10 for results over 1e-300, and also for 1 − result.
// Cost:     about 10·√(n p (1 − p)) terms of 5 ns. Pure, thread-safe.
double BinomialBelow(int64_t k, int64_t n, double p);

// Returns the smallest n with P[Bin(n, p) < k] <= delta. If each of n draws is a success with
// probability at least p, then at least k draws are successes with probability at least 1 − delta.
// P[Bin(n, p) < k] falls as n grows, so a monotone search finds n. Returns nullopt for results over
// 2^53.
//
// Requires: k >= 1, 0 < p < 1, 0 < delta < 1.
std::optional<int64_t> TrialsFor(int64_t k, double p, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_BINOMIAL_H_
