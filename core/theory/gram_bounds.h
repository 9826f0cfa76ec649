// Bounds on the error of a Gram matrix whose entries were randomized, and on the error of an
// expansion after randomized rounding. AMS is Achlioptas, McSherry, Schölkopf 2001. The matrix
// Bernstein inequality is from Tropp 2012. K is the Gram matrix, and K̂ the randomized one.
#ifndef PHIMAP_CORE_THEORY_GRAM_BOUNDS_H_
#define PHIMAP_CORE_THEORY_GRAM_BOUNDS_H_

#include <cstdint>

namespace phimap {

// How each entry K_ij off the diagonal is replaced at random, independently of all others except
// K_ji.
enum class GramSampling {
  // By s·K_ij with probability 1/s, otherwise by 0.
  kSparsify,
  // By +b with probability 1/2 + K_ij/(2b), otherwise by −b.
  kQuantise,
  // As by kSparsify first. Then each kept entry becomes +s·b or −s·b.
  kBoth,
};

struct GramLaw {
  GramSampling sampling = GramSampling::kSparsify;
  // Number of rows of the matrix.
  int64_t m = 0;
  // Upper bound on |K_ij|.
  double b = 0;
  // Entries are kept with probability 1/s. s >= 1, and s = 1 for kQuantise.
  double s = 1;
};

// Returns σ of AMS, an upper bound on the standard deviation of every entry of K̂ − K: b√(s−1) for
// kSparsify, b for kQuantise, b√s for kBoth.
double EntryDeviation(const GramLaw& law);

// Returns 4σ√m, the bound of AMS Theorem 1 on ‖K̂ − K‖₂. The probability that the bound fails
// vanishes as m grows. The proof needs m >= (s − 1)·ln⁶m, for example 2.4e7 rows at s = 2. No Gram
// matrix that fits a machine is that large, so the bound is reported but not relied on.
double AmsNormBound(const GramLaw& law);

// Returns the bound on ‖K̂ − K‖₂ of the matrix Bernstein inequality. It holds with probability 1 −
// δ, for every m. The bound is √(2v·ln(2m/δ)) + (2/3)L·ln(2m/δ), where v bounds the variance of a
// row of K̂ − K, and L the magnitude of an entry:
//
//               v               L
//   kSparsify   m·b²·(s−1)      b·max(1, s−1)
//   kQuantise   m·b²            2b
//   kBoth       m·s·b²          (s+1)·b
//
// `largest_row` is the largest Σ_{j≠i} K_ij² of any row i. If it is not negative, it replaces m·b²
// for kSparsify. The bound is then at most half as large. REQUIRES: 0 < δ < 1, m >= 1, b > 0.
double BernsteinNormBound(const GramLaw& law, double delta, double largest_row = -1);

// Returns Hoeffding's bound on the probability that a component changes by t or more when its
// coefficients are rounded. The component is Σ α_i k(x_i, x) with a unit vector α. Each α_i is
// rounded at random to a multiple of 1/s. `range` is the length of the shortest interval that
// contains 0 and all k(x_i, x). For a centred component Σ α_i(k(x_i, x) − μ_i), the interval must
// contain 0 and all k(x_i, x) − μ_i. If x is far from all x_i, these numbers are −μ_i and not 0.
double RoundingProbability(int64_t m, double range, double s, double t);

// Returns the scale s = 2c√m/(εT) of AMS Theorem 5, where c is the `range` of RoundingProbability,
// ε is `epsilon` and T is `threshold`. When the coefficients of a component are rounded at this
// scale, its value changes by a factor within 1 ± ε. The only exceptions are values that are
// trivial before and after rounding, that is, below T·√(ln m). REQUIRES: all arguments > 0.
double RoundingScale(int64_t m, double range, double epsilon, double threshold);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_GRAM_BOUNDS_H_
