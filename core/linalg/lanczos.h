// Both ends of the spectrum of a symmetric matrix that is known by its products alone.
#ifndef PHIMAP_CORE_LINALG_LANCZOS_H_
#define PHIMAP_CORE_LINALG_LANCZOS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/orthogonal_iteration.h"

namespace phimap {

struct SpectrumEnds {
  double lowest = 0;
  double highest = 0;
  // An eigenvalue lies within this distance of each end. Both ends are inside the spectrum up to
  // rounding.
  double residual = 0;
  int64_t steps = 0;

  // An estimate of ‖A‖₂ from below.
  double norm() const { return -lowest > highest ? -lowest : highest; }
};

// Lanczos with full reorthogonalization, from `start` (m numbers, not all 0), until both ends have
// a residual of at most `tolerance` times the norm, or after max_steps. The method uses one vector:
// an end whose eigenvector is orthogonal to the start is missed, which random numbers make
// improbable.
//
// Errors: those of `multiply` and `control`. Cost: a product and 4·steps·m flops a step;
//         8·steps·m bytes. Calls BLAS. REQUIRES: start is not empty, max_steps >= 1.
absl::StatusOr<SpectrumEnds> FindSpectrumEnds(SymmetricProduct multiply, std::vector<double> start,
                                              double tolerance, int64_t max_steps,
                                              const TileControl& control);

// ‖A‖₂ from both sides.
struct NormBounds {
  double below = 0;
  double above = 0;
  int64_t steps = 0;
};

// Number of steps that NormBounds takes: the least k with 2·1.648·√m·exp(−√error·(2k − 1)) <=
// doubt, or m.
// REQUIRES: m >= 1, 0 < error < 1/4, 0 < doubt < 1.
int64_t NormSteps(int64_t m, double error, double doubt);

// With probability 1 − doubt over a `start` of independent normal numbers, which have nothing to do
// with A, ‖A‖₂ <= above. After k steps the highest Ritz value θ_max misses λ_max by more than
// error·(λ_max − λ_min) with probability at most 1.648·√m·exp(−√error·(2k − 1)) (Kuczyński,
// Woźniakowski, "Estimating the largest eigenvalue by the power and Lanczos algorithms with a
// random start", SIAM J. Matrix Anal. Appl. 13, 1992, for a positive semidefinite matrix: here A −
// λ_min·I, whose Krylov spaces are A's), and so does the lowest. If neither does, λ_max − λ_min <=
// (θ_max − θ_min)/(1 − 2·error), hence
//
//   below = max(θ_max, −θ_min),   above = below + error·(θ_max − θ_min)/(1 − 2·error),
//
// which is at most 2·error/(1 − 2·error) over ‖A‖₂, and half of that where A is semidefinite. A
// residual proves less: some eigenvalue is near, but others may be beyond it.
//
// Errors and cost: as FindSpectrumEnds, NormSteps steps. The rounding of `multiply` comes on top.
absl::StatusOr<NormBounds> BoundNorm(SymmetricProduct multiply, std::vector<double> start,
                                     double error, double doubt, const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_LANCZOS_H_
