// The leading eigenpairs of a symmetric matrix that is known by its products alone.
#ifndef PHIMAP_CORE_LINALG_ORTHOGONAL_ITERATION_H_
#define PHIMAP_CORE_LINALG_ORTHOGONAL_ITERATION_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// out = v·A for a symmetric m×m matrix A, the same bits for any number of threads. Shapes: v and
// out b×m, rows are vectors; out aliases not v. `control` may stop the product; the progress
// reported to it is ignored.
using SymmetricProduct = absl::FunctionRef<absl::Status(
    ConstMatrixView<double> v, MatrixView<double> out, const TileControl& control)>;

struct OrthogonalIteration {
  // Number of wanted pairs.
  int64_t count = 0;
  // The iteration stops at this ‖A v − λ v‖ of each wanted pair, divided by the largest |λ|.
  double tolerance = 1e-10;
  int64_t max_products = 1000;
  // Whether the iteration ends, after ten products, if a wanted pair has a negative value: callers
  // that want the pairs of largest value must then shift.
  bool ends_at_negative = false;
};

struct Eigenpairs {
  // `count` of them by falling modulus, with unit eigenvectors as rows; the entry of largest
  // magnitude of each, the first of equal ones, is positive.
  std::vector<double> values;
  Matrix<double> vectors;
  // The largest ‖A v − λ v‖ of the pairs, divided by the largest |λ|; 0 for a matrix of zeros.
  double residual = 0;
  // Number of products with the matrix, each of all rows at once.
  int64_t products = 0;
};

// Orthogonal iteration (Achlioptas, McSherry, Schölkopf 2001, section 2) with a Rayleigh–Ritz step
// in each sweep: v ← orthonormal basis of v·T(A), rotated to the eigenvectors of A in its span. T
// is A itself, or, where eigenvalues fall so slowly that rows stay independent, a Chebyshev
// polynomial of a higher degree (Rutishauser 1970; Zhou, Saad, Tiago, Chelikowsky 2006). `start`
// has b >= count rows, any numbers in which no eigenvector is missing; a few more rows than `count`
// make it faster, since a product shrinks the error of pair i by |λ_{b+1}/λ_i|, a polynomial by
// more.
//
// Accuracy: within r = `residual`·|λ_1| of an eigenvalue each; within r²/gap of a simple one. The
//           iteration ends after max_products with the residual it has: callers look at it.
// Errors:   whatever `multiply` and `control` return; FAILED_PRECONDITION (VALUE_NOT_FINITE) when a
//           product is not finite.
// Cost:     products with b vectors, 8b²m flops in tiles and about 9b³ in one piece a sweep; 24bm
//           bytes. The bits do not depend on the number of threads. Calls BLAS.
// REQUIRES: 1 <= count <= start.rows() <= start.cols().
absl::StatusOr<Eigenpairs> IterateOrthogonally(const OrthogonalIteration& task,
                                               SymmetricProduct multiply, Matrix<double> start,
                                               const TileControl& control);

// The pairs that IterateOrthogonally would find, by LAPACK in one call: for a matrix whose
// eigenvalues are close to each other, or if many pairs are wanted. `products` is 0, and `residual`
// the rounding error. Cost: about 9m³ flops in one piece. INTERNAL when LAPACK does not converge.
// REQUIRES: a is symmetric, its entries are finite, 1 <= count <= a.rows().
absl::StatusOr<Eigenpairs> FactorEigenpairs(Matrix<double> a, int64_t count);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_ORTHOGONAL_ITERATION_H_
