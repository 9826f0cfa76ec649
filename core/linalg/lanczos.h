// Finds both ends of the spectrum of a symmetric matrix that is known only by its products with
// vectors.
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

// Runs the Lanczos method with full reorthogonalization from `start` (m numbers, not all 0). Stops
// when both ends have a residual of at most `tolerance` times the norm, or after max_steps steps.
// An end is missed if its eigenvector is orthogonal to `start`. For a random `start`, this is
// improbable.
//
// Errors: those of `multiply` and `control`.
// Cost:   each step takes a product and 4·steps·m flops, where `steps` is the number of steps so
//         far. 8·steps·m bytes. Calls BLAS. REQUIRES: start is not empty, max_steps >= 1.
absl::StatusOr<SpectrumEnds> FindSpectrumEnds(SymmetricProduct multiply, std::vector<double> start,
                                              double tolerance, int64_t max_steps,
                                              const TileControl& control);

// A lower and an upper bound on ‖A‖₂.
struct NormBounds {
  double below = 0;
  double above = 0;
  int64_t steps = 0;
};

// Returns the number of steps of BoundNorm for an m×m matrix. This is the smallest k with
// 2·1.648·√m·exp(−√error·(2k − 1)) <= doubt, but at most m. REQUIRES: m >= 1, 0 < error < 1/4, 0 <
// doubt < 1.
int64_t NormSteps(int64_t m, double error, double doubt);

// Returns lower and upper bounds on ‖A‖₂. The upper bound, `above`, holds with probability 1 −
// doubt if `start` holds independent normal numbers that do not depend on A.
//
// The bounds. Let λ be the eigenvalues of A, and θ the Ritz values after k steps. The bounds are
//
//   below = max(θ_max, −θ_min),   above = below + error·(θ_max − θ_min)/(1 − 2·error).
//
// The proof. A theorem of Kuczyński and Woźniakowski bounds the probability that θ_max is less than
// λ_max by more than error·(λ_max − λ_min). The probability is at most 1.648·√m·exp(−√error·(2k −
// 1)) ("Estimating the largest eigenvalue by the power and Lanczos algorithms with a random start",
// SIAM J. Matrix Anal. Appl. 13, 1992). The theorem is for positive semidefinite matrices. It is
// applied to A − λ_min·I, which has the same Krylov spaces as A. By symmetry, the same probability
// bounds the error of θ_min. If neither error is larger, λ_max − λ_min <= (θ_max − θ_min)/(1 −
// 2·error), and `above` follows.
//
// The relative excess of `above` over ‖A‖₂ is at most 2·error/(1 − 2·error), and half of that if A
// is semidefinite. The residual of a Ritz value would prove less: it shows that some eigenvalue is
// near, but not that no eigenvalue is larger.
//
// Errors and cost: those of FindSpectrumEnds with NormSteps steps. The bounds do not include the
// rounding errors of `multiply`.
absl::StatusOr<NormBounds> BoundNorm(SymmetricProduct multiply, std::vector<double> start,
                                     double error, double doubt, const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_LANCZOS_H_
