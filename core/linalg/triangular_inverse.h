// The inverse of a triangle, in blocks of our own: it can be stopped, and shared by threads.
#ifndef PHIMAP_CORE_LINALG_TRIANGULAR_INVERSE_H_
#define PHIMAP_CORE_LINALG_TRIANGULAR_INVERSE_H_

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

// L^{-T}, upper triangular with zeros below, of the lower triangle l (n×n; its upper part is not
// read), by substitution in blocks of 128 rows.
//
// Accuracy: row i of W, as computed, solves w·(L + E)ᵀ = e_i with |E| ≤ n·2⁻⁵³·|L| elementwise.
// Errors:   FAILED_PRECONDITION (TRIANGLE_SINGULAR) when a diagonal entry is 0; what `control`
//           returns, between blocks. The bits do not depend on the number of threads.
// Cost:     n³/6 multiplications and additions, nearly all of them in BLAS.
absl::StatusOr<Matrix<double>> TransposedInverseOfLowerTriangle(ConstMatrixView<double> l,
                                                                const TileControl& control);

// Work of the inversion: exactly the operations of its BLAS calls.
Work WorkOfTransposedInverse(int64_t n);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_TRIANGULAR_INVERSE_H_
