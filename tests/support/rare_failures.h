// The rule by which tests accept a statement that holds with probability 1 − δ.
#ifndef PHIMAP_TESTS_SUPPORT_RARE_FAILURES_H_
#define PHIMAP_TESTS_SUPPORT_RARE_FAILURES_H_

#include <cmath>
#include <cstdint>

namespace phimap::testing {

// Returns P[Bin(trials, p) >= failures] for 0 < p < 1, summed term by term.
inline double AtLeastSoMany(int64_t failures, int64_t trials, double p) {
  const auto n = static_cast<double>(trials);
  double below = 0;
  for (int64_t k = 0; k < failures; ++k) {
    const auto j = static_cast<double>(k);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(j + 1) - std::lgamma(n - j + 1) +
                      j * std::log(p) + (n - j) * std::log1p(-p));
  }
  return 1 - below;
}

// Whether so many failures are consistent with a failure probability of at most δ: with probability
// δ for each trial, a thousandth of all tests have as many. Trials must be enough that three times
// δ is not consistent. At δ = 0.05, 300 trials may have 28 failures, and 3δ gives 45.
inline bool AreAsRareAs(double delta, int64_t failures, int64_t trials) {
  return AtLeastSoMany(failures, trials, delta) >= 0.001;
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_RARE_FAILURES_H_
