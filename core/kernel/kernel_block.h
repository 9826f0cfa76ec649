// Computes blocks of kernel matrices in float64, for builds.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_BLOCK_H_
#define PHIMAP_CORE_KERNEL_KERNEL_BLOCK_H_

#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Maximum bytes of strings that are indexed at a time, as IndexedBytes counts them. A single string
// may be longer.
inline constexpr int64_t kMaxBlockIndexedBytes = int64_t{1} << 20;

// Returns ‖x_i‖² of each row.
std::vector<double> SquaredNorms(ConstMatrixView<double> x);

// For a string kernel, x and z have one column. Its numbers are indices into the program's table of
// strings (KernelExpression::Over). Kernel values are computed with indexes of z's strings
// (string_kernel.h). Each index covers up to kMaxBlockIndexedBytes of strings. Norms are not used.

// Computes out_ij = K(x_i, z_j). Calls BLAS, so it must not run on RPC threads.
//
// Shapes:   x n×p, z m×p, norms n and m (SquaredNorms), out n×m; out must not alias anything.
// Accuracy: that of EvaluateKernel, on products from BLAS.
// Cost:     2nmp flops for each product, L1 distance and form that the program uses. Each L1
//           distance or form needs a temporary of out's size.
void KernelBlock(const KernelProgram& program, ConstMatrixView<double> x,
                 const std::vector<double>& x_norms, ConstMatrixView<double> z,
                 const std::vector<double>& z_norms, MatrixView<double> out);

// Returns K(x_i, x_i) of each row, which is exactly 1 for an rbf. `x_norms` holds ‖x_i‖². Reads the
// numbers of `x` only if the program has forms, column sums or strings.
std::vector<double> KernelDiagonal(const KernelProgram& program, ConstMatrixView<double> x,
                                   const std::vector<double>& x_norms);

// Returns K(x, x) of strings from their k_m(x, x) (StringSquares): `squares` has a row for each
// string and a column for each string kernel m.
std::vector<double> StringDiagonal(const KernelProgram& program, ConstMatrixView<double> squares);

// Returns k_m(x, x) for each string (row) and each string kernel m (column). REQUIRES: x holds
// indices of strings, and the program has string kernels.
Matrix<double> SelfStringValues(const KernelProgram& program, ConstMatrixView<double> x);

// Computes the lower triangle of out_ij = K(x_i, x_j), with KernelDiagonal on the diagonal, in
// tiles of 256 rows. Leaves the strict upper triangle unchanged. Shapes: x n×p, out n×n. The bits
// do not depend on the number of threads. If the checkpoint of `control` stops the work, returns
// its status.
absl::Status KernelGram(const KernelProgram& program, ConstMatrixView<double> x,
                        MatrixView<double> out, const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_BLOCK_H_
