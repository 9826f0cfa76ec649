// A proof that a matrix is not positive semidefinite, even though its entries have errors.
#ifndef PHIMAP_CORE_LINALG_DEFINITENESS_WITNESS_H_
#define PHIMAP_CORE_LINALG_DEFINITENESS_WITNESS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace phimap {

// A vector z that may prove that a matrix M is not positive semidefinite. `value` is zᵀMz, and
// `scale` is (Σ|z_i|√m_ii)². If each entry m_ij has an error of at most β·√(m_ii·m_jj), then zᵀMz
// has an error of at most β·scale.
struct DefinitenessWitness {
  double value = 0;
  double scale = 0;

  // Returns true if no matrix within β of M is positive semidefinite. β is `value_error`. The
  // rounding of `value` is allowed for. Products of z and M are summed in long double, which adds
  // almost no error. Entries that were divided by roots of the diagonal have 4 more units of error.
  bool Proves(double value_error) const { return value < -(value_error + 4 * 0x1p-53) * scale; }
};

// Returns the witness of z. `entry(i, j)` is m_ij for i ≥ j; M has z.size() rows. Cost: z.size()² /
// 2 entries.
DefinitenessWitness WitnessOf(const std::vector<double>& z,
                              absl::FunctionRef<double(int64_t, int64_t)> entry);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_DEFINITENESS_WITNESS_H_
