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
  // Largest and summed Schur diagonal of the rows that were not chosen; 0 at full rank. Not below
  // 0.
  double largest_residual = 0;
  double residual_trace = 0;

  int64_t rank() const { return static_cast<int64_t>(pivots.size()); }
};

// M ≈ P·[L_r; B]·[L_rᵀ Bᵀ]·Pᵀ: at each step the largest Schur diagonal is the pivot, ties going to
// the lowest index of the matrix as given (exact ties: rows that are equal may differ in the last
// bit once BLAS has updated them); stops before the first pivot that is not over `tolerance`.
//
// Shapes:   m n×n symmetric, of which only the lower triangle is read; it is overwritten: its
// leading rank×rank lower
//           triangle then holds L_r, rows and columns in the order of `pivots`.
// Accuracy: the computed factor is exact for M + E, ‖E‖₂ ≤ 4n·n·2⁻⁵³·max M_ii plus what lies under
// the tolerance. Errors:   FAILED_PRECONDITION (NOT_POSITIVE_SEMIDEFINITE) when a Schur diagonal
// falls under −slack, or when the
//           factorization stops and an entry of the Schur complement exceeds tolerance + slack,
//           slack = 10·n·2⁻⁵³·max M_ii: a positive semidefinite matrix has neither.
//           INVALID_ARGUMENT (NOT_FINITE) for a diagonal entry that is not finite. Whatever
//           `control` returns, between blocks of 64 pivots. The same bits for any number of
//           threads.
// Cost:     n²r − 2nr²/3 … ≤ n³/3 multiplications, nearly all of them in BLAS.
// Source:   the blocked algorithm of LAPACK's dpstrf (Lucas, LAPACK working note 161); ours breaks
// ties and checks
//           definiteness.
//
// `unit` is the round-off that the values of m themselves have: 2⁻⁵³ unless they came in a shorter
// type, and stands in the place of 2⁻⁵³ in the slack.
absl::StatusOr<PivotedCholesky> FactorPivoted(MatrixView<double> m, double tolerance,
                                              const TileControl& control, double unit = 0x1p-53);

// What FactorPivoted takes for an n×n matrix of this rank: its BLAS calls' operations exactly.
Work WorkOfFactorPivoted(int64_t n, int64_t rank);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_PIVOTED_CHOLESKY_H_
