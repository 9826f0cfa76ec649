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

// The smallest D with P[|K(x, y) − ψ(x)·ψ(y)| >= a] <= delta for a fixed pair x, y, by Hoeffding's
// inequality: 2 exp(−D a²/8) for kPhase (Cornell lecture notes: D terms in [−2, 2]); 2 exp(−D a²/4)
// for kSinCos (D/2 terms cos ωᵀ(x − y) in [−1, 1]), rounded up to even.
//
// Requires: 0 < a <= 1, 0 < delta < 1. nullopt over 2^53.
std::optional<int64_t> FourierFeatures(FourierForm form, double a, double delta);

// The inverse: the error a that D features keep for a fixed pair with probability 1 − delta.
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

// An a with P[sup |K(x, y) − ψ(x)·ψ(y)| >= a] <= delta over all x, y of the region; over 1 it
// promises nothing. Independent frequencies only.
//
// Derived here, in the way of Rahimi and Recht's Claim 1 with the law of Gaussian frequencies in
// place of Markov's inequality. Let R be the radius, p the columns and r any length.
//   Net. A ball of radius B in p dimensions is covered by (1 + 2B/r)^p balls of radius r centred in
//   it. For kSinCos the error is a function of x − y, so B = 2R and one net; for kPhase B = R and
//   pairs of points of a net. By Hoeffding's inequality all N points of the net keep
//   √(c·ln(4N/δ)/D), c = 4 or 8, with probability 1 − δ/2.
//   Between. The mean length W of the m frequencies is at most √(2γp) + √(4γ·ln(2/δ)/m) with
//   probability 1 − δ/2: as a function of the normal numbers it is √(2γ/m)-Lipschitz with a mean of
//   at most √(2γp). The kernel is √(2γ/e)-Lipschitz. So between points of the net the error changes
//   by at most r·(W + √(2γ/e)) for kSinCos, 2r·(2W + √(2γ/e)) for kPhase.
// The r with the smallest sum is taken. Cost: a thousand logarithms.
double FourierUniformError(const FourierRegion& region, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_FOURIER_BOUNDS_H_
