// Rank-truncated pivoted Cholesky factorization in float64.
#ifndef PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_
#define PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

struct PivotedCholesky {
  // Indices of the pivots in the order they were chosen: the first `rank` rows of the permutation.
  std::vector<int64_t> pivots;
  // Schur diagonal of each pivot when it was chosen, falling.
  std::vector<double> diagonal;
  // Indices of the rows that were not chosen, and the Schur diagonal of each, not below 0.
  std::vector<int64_t> dropped;
  std::vector<double> residuals;

  int64_t rank() const { return static_cast<int64_t>(pivots.size()); }
  // Largest of `residuals`; 0 at full rank.
  double largest_residual() const;
};

// When a factorization stops, and when it refuses.
struct FactorLimits {
  // Pivots are larger than this.
  double tolerance = 0;
  // β: entry (i, j) is off by at most β·√(m_ii·m_jj).
  double value_error = 0x1p-53;
  // Whether the matrix is known to be positive semidefinite up to the error of its values. Then
  // nothing is refused: elimination amplifies the errors of values, so that a Schur diagonal can
  // fall far below −β even if the exact matrix is semidefinite.
  bool is_proven = false;
};

// M ≈ P·[L_r; B]·[L_rᵀ Bᵀ]·Pᵀ: at each step the largest Schur diagonal is the pivot, ties going to
// the lowest index of the matrix as given (exact ties: rows that are equal may differ in the last
// bit once BLAS has updated them); stops before the first pivot that is not over the tolerance.
//
// Shapes:   m n×n symmetric; only the lower triangle is read, and overwritten: its
//           leading rank×rank lower triangle then holds L_r, rows and columns in the order of
//           `pivots`. The upper triangle is overwritten too unless limits.is_proven.
// Accuracy: the computed factor is exact for M + E, ‖E‖₂ ≤ 4n·n·2⁻⁵³·max M_ii plus what lies under
//           the tolerance.
// Errors:   FAILED_PRECONDITION (KERNEL_NOT_POSITIVE_SEMIDEFINITE) when an unproven matrix has a
//           witness: a z with zᵀMz < −β(Σ|z_i|√m_ii)², which no values within β of these can undo.
//           Indefiniteness is looked for where a Schur diagonal falls under −β·m_ii, and in the
//           largest entry that is left beside the diagonal. INVALID_ARGUMENT (VALUE_NOT_FINITE) for
//           an entry that is not finite. Errors of `control`, between blocks of 64 pivots.
// Bits:     equal for any number of threads.
// Cost:     n²r − 2nr²/3 … ≤ n³/3 multiplications, nearly all of them in BLAS.
// Source:   the blocked algorithm of LAPACK's dpstrf (Lucas, LAPACK working note 161); ours breaks
//           ties and checks definiteness.
absl::StatusOr<PivotedCholesky> FactorPivoted(MatrixView<double> m, const FactorLimits& limits,
                                              const TileControl& control);

// Work of FactorPivoted for an n×n matrix of this rank: exactly the operations of its BLAS calls.
Work WorkOfFactorPivoted(int64_t n, int64_t rank);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_
