// Finds the leading eigenpairs of a symmetric matrix that is known only by its products with
// vectors.
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

// Computes out = v·A for a symmetric m×m matrix A, with the same bits for any number of threads.
// Shapes: v and out b×m, each row a vector; out must not alias v. `control` may stop the product;
// the progress reported to `control` is ignored.
using SymmetricProduct = absl::FunctionRef<absl::Status(
    ConstMatrixView<double> v, MatrixView<double> out, const TileControl& control)>;

struct OrthogonalIteration {
  // Number of wanted pairs.
  int64_t count = 0;
  // The iteration stops when all wanted pairs (λ, v) have a residual ‖A v − λ v‖ of at most
  // `tolerance` times the largest |λ|.
  double tolerance = 1e-10;
  int64_t max_products = 1000;
  // Whether the iteration ends after ten products if a wanted pair has a negative value. It finds
  // the pairs of largest |λ|, so callers that want the largest λ must then shift the matrix.
  bool ends_at_negative = false;
};

struct Eigenpairs {
  // `count` eigenvalues, ordered by falling modulus, and their unit eigenvectors, which are the
  // rows of `vectors`. The sign of each vector makes its entry of largest magnitude (the first of
  // equal ones) positive.
  std::vector<double> values;
  Matrix<double> vectors;
  // The largest ‖A v − λ v‖ of the pairs, divided by the largest |λ|; 0 for a matrix of zeros.
  double residual = 0;
  // Number of products with the matrix, each of all rows at once.
  int64_t products = 0;
};

// Finds the leading eigenpairs of a symmetric m×m matrix A by orthogonal iteration (Achlioptas,
// McSherry, Schölkopf 2001, section 2). Each sweep multiplies the rows v by T(A), orthonormalizes
// them, and rotates them to the eigenvectors of A in their span (a Rayleigh–Ritz step). By default,
// T(A) is A itself. If eigenvalues fall so slowly that the rows stay independent, T is a Chebyshev
// polynomial of a higher degree (Rutishauser 1970; Zhou, Saad, Tiago, Chelikowsky 2006).
//
// `start` has b >= count rows of any numbers. No eigenvector that is sought may be orthogonal to
// all of them. A few more rows than `count` speed the iteration up. Let λ_i be the i-th eigenvalue
// by size. A sweep with A multiplies the error of pair i by |λ_{b+1}/λ_i|, and a sweep with a
// polynomial by less.
//
// Accuracy: let r = `residual`·|λ_1|. Each value is within r of an eigenvalue, and within r²/gap if
//           that eigenvalue is simple. The iteration ends after max_products products, however
//           large the residual is. Callers must check the residual.
// Errors:   those of `multiply` and `control`; FAILED_PRECONDITION (VALUE_NOT_FINITE) if a product
//           is not finite.
// Cost:     for each sweep, products with b vectors, 8b²m flops in tiles and about 9b³ flops in one
//           piece. 24bm bytes. The bits do not depend on the number of threads. Calls BLAS.
// REQUIRES: 1 <= count <= start.rows() <= start.cols().
absl::StatusOr<Eigenpairs> IterateOrthogonally(const OrthogonalIteration& task,
                                               SymmetricProduct multiply, Matrix<double> start,
                                               const TileControl& control);

// Finds the same pairs as IterateOrthogonally with one call of LAPACK. Meant for matrices whose
// eigenvalues are close to each other, and for many pairs. In the result, `products` is 0, and
// `residual` is the rounding error. Cost: about 9m³ flops in one piece. INTERNAL if LAPACK does not
// converge. REQUIRES: a is symmetric, its entries are finite, 1 <= count <= a.rows().
absl::StatusOr<Eigenpairs> FactorEigenpairs(Matrix<double> a, int64_t count);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_ORTHOGONAL_ITERATION_H_
