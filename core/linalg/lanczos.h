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
  // An eigenvalue lies within this of each; both are inside the spectrum but for rounding.
  double residual = 0;
  int64_t steps = 0;

  // An estimate of ‖A‖₂ from below.
  double norm() const { return -lowest > highest ? -lowest : highest; }
};

// Lanczos with full reorthogonalization, from `start` (m numbers, not all 0), until both ends have
// a residual of at most `tolerance` times the norm, or after max_steps. It sees one vector: an end
// whose eigenvector is orthogonal to the start is missed, which random numbers make improbable.
//
// Errors: whatever `multiply` and `control` return. Cost: a product and 4·steps·m flops a step;
//         8·steps·m bytes. Calls BLAS. REQUIRES: start is not empty, max_steps >= 1.
absl::StatusOr<SpectrumEnds> FindSpectrumEnds(SymmetricProduct multiply, std::vector<double> start,
                                              double tolerance, int64_t max_steps,
                                              const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_LANCZOS_H_
