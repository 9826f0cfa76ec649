// How many random Fourier features suffice for one kernel value.
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

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_FOURIER_BOUNDS_H_
