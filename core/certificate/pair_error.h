// Infers the error on all pairs of rows from the error on some pairs.
//
// Both statements assume exchangeable rows, that is rows in random order, as a uniform sample of a
// stream is. Pairs that share a row depend on each other, so a mean over pairs is not a mean of
// independent numbers.
#ifndef PHIMAP_CORE_CERTIFICATE_PAIR_ERROR_H_
#define PHIMAP_CORE_CERTIFICATE_PAIR_ERROR_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace phimap {

// Interval of the mean over all pairs with confidence 95 %, approximately.
struct MeanInterval {
  double low = 0;
  double high = 0;
};

// With confidence 95 %, at most `share` of all pairs err more than `largest`. Exact for every law
// of the errors.
struct PairBound {
  // Pairs that share no row.
  int64_t pairs = 0;
  double largest = 0;
  double share = 0;
};

// Errors of pairs, summed by row. The pairs are the edges of a graph on the rows.
struct RowErrors {
  explicit RowErrors(int64_t rows)
      : sums(static_cast<size_t>(rows)), counts(static_cast<size_t>(rows)) {}

  // Per row: the sum and the number of the errors of its pairs.
  std::vector<double> sums;
  std::vector<int64_t> counts;
};

// Jackknife over rows: with M the mean over all pairs and M_i that over the pairs without row i, of
// n rows, s² = (n − 1)/n·Σ(M_i/M − 1)² estimates the squared relative deviation of M, and the
// interval is M·exp(±t·√ln(1 + s²)): the deviation of ln M if M is lognormal, as means of skewed
// errors nearly are. t is the quantile .975 of Student's law of ⌊n/2⌋ − 1 degrees of freedom.
//
// Accuracy: covers .99 where errors are moderate and depend on no row, .96 where rows have moderate
//           effects, and .94 to .98 of independent lognormal errors with σ = 2, from 20 rows on. No
//           interval of 20 rows covers every law: of strong row effects (lognormal, σ = 1 each) it
//           covers .89, and where few rows err at all there may be none among those that are
//           measured. PairBound complements it for this reason.
// Width:    up to 1.65 times that of the interval that knew the law, least where rows matter most:
//           where they do not, s² is twice the variance (Efron, Stein 1981).
//
// nullopt if no interval exists: M is 0, or not finite. REQUIRES: 3 rows or more, each in a pair,
// no row in all pairs; errors >= 0.
std::optional<MeanInterval> JackknifeInterval(const RowErrors& errors);

// All of n independent pairs err at most e with probability (1 − p)ⁿ if a share p of all errs more;
// that is .05 at p = 1 − .05^{1/n}. `disjoint`: errors of pairs that share no row. REQUIRES: at
// least one.
PairBound BoundPairs(const std::vector<double>& disjoint);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_PAIR_ERROR_H_
