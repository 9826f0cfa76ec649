// Rank-truncated pivoted Cholesky factorization in float64, and the proof that a matrix is not
// positive semidefinite, even though its entries have errors.
#ifndef PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_
#define PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

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

struct PivotedCholesky {
  // Indices of the pivots in the order they were chosen: the first `rank` rows of the permutation.
  std::vector<int64_t> pivots;
  // Schur diagonal of each pivot when it was chosen, in falling order.
  std::vector<double> diagonal;
  // `dropped` holds the indices of the rows that were not chosen. `residuals` holds the Schur
  // diagonal of each, or 0 if it is negative.
  std::vector<int64_t> dropped;
  std::vector<double> residuals;

  int64_t rank() const { return static_cast<int64_t>(pivots.size()); }
  // Largest of `residuals`; 0 at full rank.
  double largest_residual() const;
};

// When a factorization stops, and when it rejects a matrix.
struct FactorLimits {
  // A row becomes a pivot only if its Schur diagonal is larger than this.
  double tolerance = 0;
  // β, the error of the matrix entries: entry (i, j) has an error of at most β·√(m_ii·m_jj).
  double value_error = 0x1p-53;
  // Whether the matrix is known to be positive semidefinite up to the error of its values. If so,
  // no matrix is rejected, because elimination amplifies the errors of values: a Schur diagonal can
  // fall far below −β even if the exact matrix is semidefinite.
  bool is_proven = false;
};

// Factors a symmetric n×n matrix M by pivoted Cholesky: M ≈ P·[L_r; B]·[L_rᵀ Bᵀ]·Pᵀ. P is a
// permutation, r the rank, L_r a lower triangle of r rows, and B the other n − r rows of the
// factor. Each step takes the row of the largest Schur diagonal as the pivot. Of equal diagonals,
// it takes the one of the lowest index in the given matrix. BLAS updates can make diagonals of
// equal rows differ in their last bits. The factorization stops before the first pivot that does
// not exceed the tolerance.
//
// Shapes:   m n×n. Only the lower triangle is read. It is overwritten: afterwards its leading
//           rank×rank part holds L_r, with rows and columns in the order of `pivots`. The upper
//           triangle is also overwritten unless limits.is_proven.
// Accuracy: the computed factor is exact for some M + E. ‖E‖₂ is at most 4n·n·2⁻⁵³·max M_ii plus
//           the part below the tolerance.
// Errors:   FAILED_PRECONDITION (KERNEL_NOT_POSITIVE_SEMIDEFINITE) if a matrix that is not proven
//           has a witness. A witness is a vector z with zᵀMz < −β(Σ|z_i|√m_ii)², where β is
//           limits.value_error. It proves that no matrix within β of M is positive semidefinite
//           (DefinitenessWitness). A witness is sought where a Schur diagonal falls below
//           −β·m_ii. At the end, a witness is also sought for the off-diagonal entry that most
//           exceeds the mean of its two diagonal entries. INVALID_ARGUMENT (VALUE_NOT_FINITE) for
//           an entry that is not finite. Errors of `control`, which is called between blocks of 64
//           pivots.
// Bits:     the same for any number of threads.
// Cost:     n²r − 2nr²/3 multiplications, at most n³/3, nearly all of them in BLAS.
// Source:   the blocked algorithm of LAPACK's dpstrf (Lucas, LAPACK working note 161), with
//           tie-breaking and the check of definiteness added.
absl::StatusOr<PivotedCholesky> FactorPivoted(MatrixView<double> m, const FactorLimits& limits,
                                              const TileControl& control);

// Work of FactorPivoted for an n×n matrix of this rank: exactly the operations of its BLAS calls.
Work WorkOfFactorPivoted(int64_t n, int64_t rank);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_
