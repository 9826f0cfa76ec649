// Infers the error on all pairs of rows from the error on some pairs.
//
// The interval and the bound below assume that rows are exchangeable, that is, a uniform sample of
// a stream in random order. Two pairs that share a row depend on each other. The errors of all
// pairs are therefore not independent numbers.
#ifndef PHIMAP_CORE_CERTIFICATE_PAIR_ERROR_H_
#define PHIMAP_CORE_CERTIFICATE_PAIR_ERROR_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace phimap {

// Confidence interval for the mean over all pairs, at approximately 95 %.
struct MeanInterval {
  double low = 0;
  double high = 0;
  bool operator==(const MeanInterval&) const = default;
};

// The statement, with confidence 95 %, that at most `share` of all pairs have an error above
// `largest`. The confidence is exact for every distribution of the errors.
struct PairBound {
  // Number of measured pairs, no two of which share a row.
  int64_t pairs = 0;
  double largest = 0;
  double share = 0;
  bool operator==(const PairBound&) const = default;
};

// Sums of pair errors by row. The error of a pair is added to the sums of both of its rows.
struct RowErrors {
  explicit RowErrors(int64_t rows)
      : sums(static_cast<size_t>(rows)), counts(static_cast<size_t>(rows)) {}

  // For each row, the sum of the errors of its pairs, and the number of its pairs.
  std::vector<double> sums;
  std::vector<int64_t> counts;
};

// Returns a confidence interval for the mean over all pairs, by a jackknife over the n rows. Let M
// be the mean over the measured pairs, and M_i the mean over those of them without row i. The
// squared relative deviation of M is estimated by s² = (n − 1)/n·Σ(M_i/M − 1)². Means of skewed
// errors are nearly lognormal. If M is lognormal, the deviation of ln M is √ln(1 + s²). The
// interval is therefore M·exp(±t·√ln(1 + s²)). Here t is the .975 quantile of Student's
// distribution with ⌊n/2⌋ − 1 degrees of freedom.
//
// Accuracy: from 20 rows on, the interval contains the true mean with probability .99 if errors are
//           moderate and do not depend on rows. The probability is .96 if rows have moderate
//           effects, and .94 to .98 for independent lognormal errors with σ = 2. It is only .89 for
//           strong row effects (lognormal, σ = 1 each). If large errors occur only in few pairs,
//           perhaps none of these pairs is measured. No interval from 20 rows is accurate for every
//           distribution. PairBound complements the interval for this reason.
// Width:    up to 1.65 times the width of an interval that knows the distribution. The ratio is
//           smallest if row effects dominate. Without row effects, s² is twice the variance (Efron,
//           Stein 1981).
//
// Returns nullopt if M is 0, or if the interval is not finite. REQUIRES: at least 3 rows; each row
// is in some pair, and no row in all pairs; errors >= 0.
std::optional<MeanInterval> JackknifeInterval(const RowErrors& errors);

// Returns an approximate 95 % confidence interval for Σ E(numerator)/Σ E(denominator) of
// independent rows, such as Σ ρ(x)/Σ K(x, x), by a jackknife over the rows of the logarithm of the
// ratio: as JackknifeInterval, with n − 1 degrees of freedom. Returns nullopt if the ratio is not
// positive and finite, or if fewer than `least_effective_rows` carry the numerators or the
// denominators, where (Σ a)²/Σ a² is the number of rows that carry Σ a.
//
// Rows of a kind that was not drawn may have much larger ratios than the others, as isolated
// outliers have residuals. With probability 97.5 % at most a share ln(40)/n of all rows is of such
// a kind, since (1 − s)ⁿ ≤ e^{−ns}. The upper end allows for that many rows whose numerator is
// their denominator, the largest that was drawn. REQUIRES: at least 3 rows, as many numerators as
// denominators, 0 <= numerator <= denominator.
std::optional<MeanInterval> RatioInterval(const std::vector<double>& numerators,
                                          const std::vector<double>& denominators,
                                          double least_effective_rows);

// Returns (Σ a)²/Σ a², or 0 if all numbers are 0. Numbers are scaled first, so that no square
// overflows.
double EffectiveCount(const std::vector<double>& numbers);

// Returns the bound on the share of pairs with larger errors, from the errors of pairs that share
// no row. Let e be the largest of n such errors. If a share p of all pairs has an error above e,
// then n independent pairs all have an error of at most e with probability (1 − p)ⁿ. This
// probability is .05 for p = 1 − .05^{1/n}. REQUIRES: `disjoint` is not empty.
PairBound BoundPairs(const std::vector<double>& disjoint);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_PAIR_ERROR_H_
