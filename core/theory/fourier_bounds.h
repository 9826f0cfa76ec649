// Numbers of random Fourier features that suffice for one kernel value.
#ifndef PHIMAP_CORE_THEORY_FOURIER_BOUNDS_H_
#define PHIMAP_CORE_THEORY_FOURIER_BOUNDS_H_

#include <cstdint>
#include <optional>

namespace phimap {

enum class FourierForm {
  kPhase,   // √(2/D) cos(ωᵀx + b), D frequencies
  kSinCos,  // √(2/D) (cos ωᵀx, sin ωᵀx), D/2 frequencies
};

// Returns the number of features D that suffices for one kernel value: its error is less than a,
// except with probability at most delta. The error is |K(x, y) − ψ(x)·ψ(y)| for one fixed pair x, y
// and the features ψ. Hoeffding's inequality bounds the probability of a larger error by
//   kPhase    2 exp(−D a²/8), from D terms in [−2, 2] (Cornell lecture notes);
//   kSinCos   2 exp(−D a²/4), from D/2 terms cos ωᵀ(x − y) in [−1, 1]. D is rounded up to even.
//
// Requires: 0 < a <= 1, 0 < delta < 1. Returns nullopt for results over 2^53.
std::optional<int64_t> FourierFeatures(FourierForm form, double a, double delta);

// Returns the inverse of FourierFeatures. For a fixed pair of rows, D = `dimensions` features keep
// an error of less than the result, with probability 1 − delta.
double FourierError(FourierForm form, int64_t dimensions, double delta);

// Region for a bound on all pairs of rows at once.
struct FourierRegion {
  FourierForm form = FourierForm::kSinCos;
  int64_t dimensions = 0;
  int64_t columns = 0;
  // The γ of exp(−γ‖x − y‖²).
  double gamma = 0;
  // All x and y are within this distance of one point.
  double radius = 0;
};

// Returns a bound a on the errors of all kernel values at once: sup |K(x, y) − ψ(x)·ψ(y)| over all
// x, y of the region is less than a with probability 1 − delta. An a over 1 promises nothing. Holds
// for independent frequencies only.
//
// The derivation follows Claim 1 of Rahimi and Recht, but uses the distribution of Gaussian
// frequencies instead of Markov's inequality. Let δ be `delta`, R the radius, p the number of
// columns, D the number of features and m the number of frequencies. Let r be any length.
//   1. The net. A ball of radius B in p dimensions is covered by (1 + 2B/r)^p balls of radius r.
//      Their centres are the net. For kSinCos the error is a function of x − y. One net with
//      B = 2R covers these differences. For kPhase, pairs of points of a net with B = R are needed.
//      Let N be the number of points, or of pairs. By Hoeffding's inequality, with probability
//      1 − δ/2, the error at all of them is at most √(c·ln(4N/δ)/D). Here c is 4 for kSinCos and
//      8 for kPhase.
//   2. Between the points. Let W be the mean length of the frequencies. As a function of the
//      normal numbers, W is √(2γ/m)-Lipschitz and has a mean of at most √(2γp). With probability
//      1 − δ/2 it is therefore at most √(2γp) + √(4γ·ln(2/δ)/m). The kernel is √(2γ/e)-Lipschitz.
//      So between points of the net the error changes by at most r·(W + √(2γ/e)) for kSinCos, and
//      by at most 2r·(2W + √(2γ/e)) for kPhase.
// The result is the sum of both bounds for the r that makes it smallest. Cost: a thousand
// logarithms.
double FourierUniformError(const FourierRegion& region, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_FOURIER_BOUNDS_H_
