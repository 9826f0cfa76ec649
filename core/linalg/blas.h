// BLAS and LAPACK for everything that is built once. blas.cc is the only file of the project that
// includes their headers.
//
// All matrices are row-major, and float64 except where a name has Single. The library is held to
// one thread (UseOneBlasThread); parallel work is cut into tiles by its caller. Never call from an
// RPC thread: more than about 130 threads at once corrupt OpenBLAS's heap.
#ifndef PHIMAP_CORE_LINALG_BLAS_H_
#define PHIMAP_CORE_LINALG_BLAS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Holds the library to one thread. Call once, before the first other call.
void UseOneBlasThread();
// The core the library chose its routines for, for instance "Haswell". Results may differ in the
// last bits between cores.
std::string BlasCoreName();

// out = alpha · a · b + beta · out. Shapes: a m×k, b k×n, out m×n; out aliases neither.
void Multiply(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b, double beta,
              MatrixView<double> out);
// out = alpha · a · bᵀ + beta · out. Shapes: a m×k, b n×k, out m×n; out aliases neither.
void MultiplyTransposed(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b,
                        double beta, MatrixView<double> out);
// out = a · bᵀ in float32. Shapes as above.
void MultiplyTransposedSingle(ConstMatrixView<float> a, ConstMatrixView<float> b,
                              MatrixView<float> out);
// out_i = a_i·x for each row i, in float32. Shapes: a m×k, x k numbers, out m numbers.
void MultiplyVectorSingle(ConstMatrixView<float> a, const float* x, float* out);
// out_i = alpha · a_i·x + beta · out_i for each row i. Shapes: a m×k, x k numbers, out m numbers
// `out_stride` apart.
void MultiplyVector(double alpha, ConstMatrixView<double> a, const double* x, double beta,
                    double* out, int64_t out_stride);
// Lower triangle of out (diagonal included) = alpha · a · aᵀ + beta · out. Shapes: a n×k, out n×n.
// The strict upper triangle is not touched.
void SymmetricRankUpdate(double alpha, ConstMatrixView<double> a, double beta,
                         MatrixView<double> out);
// out = l · out, l lower triangular with a non-unit diagonal; its strict upper triangle is not
// read. Shapes: l m×m, out m×n.
void MultiplyLowerTriangle(ConstMatrixView<double> l, MatrixView<double> out);
// Solves l · x = out in place, l as above.
void SolveLowerTriangle(ConstMatrixView<double> l, MatrixView<double> out);
// Solves lᵀ · x = out in place, l as above.
void SolveLowerTriangleTransposed(ConstMatrixView<double> l, MatrixView<double> out);
// Solves x · lᵀ = out in place, l as above. Shapes: l m×m, out n×m.
void SolveLowerTriangleFromRight(ConstMatrixView<double> l, MatrixView<double> out);
// Eigenvalues, rising, of the symmetric matrix whose lower triangle m holds; m is overwritten.
// Within about n·2⁻⁵³·‖m‖₂ of the exact ones. Cost: (4/3)n³ flops. INTERNAL when LAPACK does not
// converge. REQUIRES: entries are finite.
absl::StatusOr<std::vector<double>> SymmetricEigenvalues(MatrixView<double> m);
// Eigenvalues, rising, of the symmetric matrix whose lower triangle m holds; row i of m becomes the
// unit eigenvector of value i. Within about n·2⁻⁵³·‖m‖₂ of the exact ones. Cost: about 9n³ flops.
// INTERNAL when LAPACK does not converge. REQUIRES: entries are finite.
absl::StatusOr<std::vector<double>> SymmetricEigenvectors(MatrixView<double> m);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_BLAS_H_
