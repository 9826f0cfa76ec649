// A proof that a matrix is not positive semidefinite, although its entries err.
#ifndef PHIMAP_CORE_LINALG_DEFINITENESS_WITNESS_H_
#define PHIMAP_CORE_LINALG_DEFINITENESS_WITNESS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace phimap {

// Some z: zᵀMz, and (Σ|z_i|√m_ii)², by which the errors of M's entries enter it. If entry (i, j) is
// off by at most β·√(m_ii·m_jj), then zᵀMz is off by at most β times that.
struct DefinitenessWitness {
  double value = 0;
  double scale = 0;

  // Whether no matrix within β of M, and none that rounding of `value` hides, is positive
  // semidefinite. Products of z and M are summed in long double, which adds next to nothing; where
  // entries were divided by roots of the diagonal they err by 4 units more.
  bool Proves(double value_error) const { return value < -(value_error + 4 * 0x1p-53) * scale; }
};

// `entry(i, j)` is m_ij for i ≥ j among z.size() rows. Cost: z.size()² / 2 entries.
DefinitenessWitness WitnessOf(const std::vector<double>& z,
                              absl::FunctionRef<double(int64_t, int64_t)> entry);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_DEFINITENESS_WITNESS_H_
