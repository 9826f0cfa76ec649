// The binomial law: how many draws until k of them succeed, and what k successes of n say about the
// probability of one.
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

// The k-th smallest of n independent draws of a law is a lower bound on the law's α-quantile with
// probability at least 1 − doubt, whatever the law is, if P[Bin(n, α) < k] ≤ doubt. Returns the
// largest such k; 0 if there is none. The k-th *largest* of n draws is in the same way an upper
// bound on the (1 − α)-quantile. Cost: about 50 sums of BinomialBelow.
//
// Requires: 0 <= n <= 2^53, α < 1, 0 < doubt < 1.
int64_t ConfidentRank(int64_t n, double alpha, double doubt);

struct ProbabilityInterval {
  double low = 0;
  double high = 1;
};

// Returns the interval of Clopper and Pearson, "The use of confidence or fiducial limits
// illustrated in the case of the binomial" (Biometrika 26, 1934): the probabilities p that neither
// P[Bin(n, p) >= k] nor P[Bin(n, p) <= k] finds under (1 − confidence)/2. For every p it contains p
// with at least the confidence. Unlike k/n ± √(k(n − k)/n³) it has a width where k is 0 or n: it
// then ends at 1 − ((1 − confidence)/2)^(1/n) from there.
//
// Requires: 0 <= k <= n <= 2^53, n >= 1, 0 < confidence < 1.
// Accuracy: absolute error of an end under 1e-12. Cost: about 100 sums of BinomialBelow.
ProbabilityInterval BinomialInterval(int64_t k, int64_t n, double confidence);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_BINOMIAL_H_
