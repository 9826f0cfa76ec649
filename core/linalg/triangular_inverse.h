// Inverts a triangular matrix in blocks, so that the work can be stopped and shared by threads.
#ifndef PHIMAP_CORE_LINALG_TRIANGULAR_INVERSE_H_
#define PHIMAP_CORE_LINALG_TRIANGULAR_INVERSE_H_

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

// Returns W = L^{-T} for a lower triangle L. W is an upper triangle with zeros below. `l` holds L
// (n×n); its upper part is not read. The rows of W are computed by substitution, in blocks of 128.
//
// Accuracy: let w be the computed row i of W, and e_i row i of the identity. Then w·(L + E)ᵀ = e_i
//           for some E with |E| ≤ n·2⁻⁵³·|L| elementwise.
// Errors:   FAILED_PRECONDITION (TRIANGLE_SINGULAR) if a diagonal entry is 0; errors of `control`,
//           which is called between blocks. The bits do not depend on the number of threads.
// Cost:     n³/6 multiplications and additions, nearly all of them in BLAS.
absl::StatusOr<Matrix<double>> TransposedInverseOfLowerTriangle(ConstMatrixView<double> l,
                                                                const TileControl& control);

// Work of the inversion: exactly the operations of its BLAS calls.
Work WorkOfTransposedInverse(int64_t n);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_TRIANGULAR_INVERSE_H_
