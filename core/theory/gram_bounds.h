// Error of a Gram matrix whose entries were randomized (Achlioptas, McSherry, Schölkopf 2001;
// matrix Bernstein: Tropp 2012), and of an expansion after randomized rounding.
#ifndef PHIMAP_CORE_THEORY_GRAM_BOUNDS_H_
#define PHIMAP_CORE_THEORY_GRAM_BOUNDS_H_

#include <cstdint>

namespace phimap {

// Randomization of each entry off the diagonal, independent up to symmetry.
enum class GramSampling {
  // s·K_ij with probability 1/s, else 0.
  kSparsify,
  // ±b, +b with probability 1/2 + K_ij/(2b).
  kQuantise,
  // Sampling first, then ±s·b for the kept entries.
  kBoth,
};

struct GramLaw {
  GramSampling sampling = GramSampling::kSparsify;
  // Rows of the matrix.
  int64_t m = 0;
  // Upper bound on |K_ij|.
  double b = 0;
  // >= 1; 1 for kQuantise.
  double s = 1;
};

// σ of AMS: no entry of K̂ − K has a larger deviation. b√(s−1), b, b√s.
double EntryDeviation(const GramLaw& law);

// 4σ√m: AMS Theorem 1's bound of ‖K̂ − K‖₂, except with a probability that vanishes with m. The
// proof needs m >= (s − 1)·ln⁶m, which no Gram matrix that fits a machine meets (2.4e7 rows at s =
// 2), so the bound is reported and not relied on.
double AmsNormBound(const GramLaw& law);

// Matrix Bernstein, for every m: ‖K̂ − K‖₂ is at most √(2v·ln(2m/δ)) + (2/3)L·ln(2m/δ) with
// probability 1 − δ. v bounds the variance of a row, L the modulus of an entry of K̂ − K:
//
//               v               L
//   kSparsify   m·b²·(s−1)      b·max(1, s−1)
//   kQuantise   m·b²            2b
//   kBoth       m·s·b²          (s+1)·b
//
// For kSparsify `largest_row`, the largest Σ_{j≠i} K_ij² of a row, if it is not negative, replaces
// m·b², and halves the bound or better. REQUIRES: 0 < δ < 1, m >= 1, b > 0.
double BernsteinNormBound(const GramLaw& law, double delta, double largest_row = -1);

// Hoeffding: a component Σ α_i k(x_i, x) of a unit α changes by t or more with probability at most
// this when α is rounded at scale s, α_i to a multiple of 1/s at random. `range` is the length of
// the shortest interval that holds 0 and all k(x_i, x); of a centred component, Σ α_i(k(x_i, x) −
// μ_i), 0 and all k(x_i, x) − μ_i, which far from all x_i is that of the means and not 0.
double RoundingProbability(int64_t m, double range, double s, double t);

// The scale s = 2c√m/(εT) of AMS Theorem 5, c the range as above: rounded components keep their
// distance from T within ε. REQUIRES: all arguments > 0.
double RoundingScale(int64_t m, double range, double epsilon, double threshold);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_GRAM_BOUNDS_H_
