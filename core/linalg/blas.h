// BLAS and LAPACK, for builds and other work that is not repeated for each request. blas.cc is the
// only file of the project that includes their headers.
//
// All matrices are row-major, and float64 except where a name has Single. The library runs on one
// thread (UseOneBlasThread); callers cut parallel work into tiles. Never call from an RPC thread:
// more than about 130 threads at once corrupt OpenBLAS's heap.
#ifndef PHIMAP_CORE_LINALG_BLAS_H_
#define PHIMAP_CORE_LINALG_BLAS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Limits the library to one thread. Call once, before any other function of this file.
void UseOneBlasThread();
// Returns the name of the core for which the library chose its routines, for instance "Haswell".
// Results may differ in the last bits between cores.
std::string BlasCoreName();

// Computes out = alpha · a · b + beta · out. Shapes: a m×k, b k×n, out m×n; out must not alias a or
// b.
void Multiply(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b, double beta,
              MatrixView<double> out);
// Computes out = alpha · a · bᵀ + beta · out. Shapes: a m×k, b n×k, out m×n; out must not alias a
// or b.
void MultiplyTransposed(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b,
                        double beta, MatrixView<double> out);
// Computes out = alpha · aᵀ · b + beta · out. Shapes: a k×m, b k×n, out m×n; out must not alias a
// or b.
void MultiplyFirstTransposed(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b,
                             double beta, MatrixView<double> out);
// Computes out = a · bᵀ in float32. Shapes: those of MultiplyTransposed.
void MultiplyTransposedSingle(ConstMatrixView<float> a, ConstMatrixView<float> b,
                              MatrixView<float> out);
// Computes out_i = a_i·x for each row i, in float32. Shapes: a m×k, x k numbers, out m numbers.
void MultiplyVectorSingle(ConstMatrixView<float> a, const float* x, float* out);
// Computes out_i = alpha · a_i·x + beta · out_i for each row i. Shapes: a m×k, x k numbers, out m
// numbers that are `out_stride` apart.
void MultiplyVector(double alpha, ConstMatrixView<double> a, const double* x, double beta,
                    double* out, int64_t out_stride);
// Computes the lower triangle of out = alpha · a · aᵀ + beta · out, with the diagonal. Shapes: a
// n×k, out n×n. Leaves the strict upper triangle of out unchanged.
void SymmetricRankUpdate(double alpha, ConstMatrixView<double> a, double beta,
                         MatrixView<double> out);
// Computes the lower triangle of out = alpha · aᵀ · a + beta · out, with the diagonal. Shapes: a
// k×n, out n×n. Leaves the strict upper triangle of out unchanged.
void SymmetricRankUpdateTransposed(double alpha, ConstMatrixView<double> a, double beta,
                                   MatrixView<double> out);
// Computes out = l · out for a lower triangle l with any diagonal. The strict upper triangle of l
// is not read. Shapes: l m×m, out m×n.
void MultiplyLowerTriangle(ConstMatrixView<double> l, MatrixView<double> out);
// Solves l · x = out for x, and stores x in out. l is as in MultiplyLowerTriangle.
void SolveLowerTriangle(ConstMatrixView<double> l, MatrixView<double> out);
// Solves lᵀ · x = out for x, and stores x in out. l is as in MultiplyLowerTriangle.
void SolveLowerTriangleTransposed(ConstMatrixView<double> l, MatrixView<double> out);
// Solves x · lᵀ = out for x, and stores x in out. Shapes: l m×m, as in MultiplyLowerTriangle; out
// n×m.
void SolveLowerTriangleFromRight(ConstMatrixView<double> l, MatrixView<double> out);
// Replaces the lower triangle of the symmetric positive definite matrix m by its Cholesky factor.
// Returns false, with m overwritten, if m is not positive definite up to rounding. Cost: n³/3
// flops. REQUIRES: entries are finite.
bool FactorPositiveDefinite(MatrixView<double> m);
// Replaces the symmetric positive definite matrix m by its inverse; reads and writes only the lower
// triangle. Returns false, with m overwritten, if m is not positive definite up to rounding.
// Accuracy: about n·2⁻⁵³·cond(m) relative to ‖m⁻¹‖. Cost: 2n³ flops. REQUIRES: entries are finite.
bool InvertPositiveDefinite(MatrixView<double> m);
// Returns the eigenvalues, in rising order, of the symmetric matrix whose lower triangle m holds.
// Overwrites m. Accuracy: about n·2⁻⁵³·‖m‖₂. Cost: (4/3)n³ flops. INTERNAL if LAPACK does not
// converge. REQUIRES: entries are finite.
absl::StatusOr<std::vector<double>> SymmetricEigenvalues(MatrixView<double> m);
// Returns the eigenvalues, in rising order, of the symmetric matrix whose lower triangle m holds.
// Replaces row i of m by the unit eigenvector of value i. Accuracy of the values: about
// n·2⁻⁵³·‖m‖₂. Cost: about 9n³ flops. INTERNAL if LAPACK does not converge. REQUIRES: entries are
// finite.
absl::StatusOr<std::vector<double>> SymmetricEigenvectors(MatrixView<double> m);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_BLAS_H_
