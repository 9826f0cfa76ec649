// Blocks of kernel matrices in float64, for building.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_BLOCK_H_
#define PHIMAP_CORE_KERNEL_KERNEL_BLOCK_H_

#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Maximum size of the strings that are indexed at a time, counted once for each unit and n
// (IndexedBytes). A single string may be larger.
inline constexpr int64_t kMaxBlockIndexedBytes = int64_t{1} << 20;

// ‖x_i‖² of each row.
std::vector<double> SquaredNorms(ConstMatrixView<double> x);

// For a string kernel, x and z have one column, whose numbers are indices into the program's table
// of strings (KernelExpression::Over). Kernel values are found by an index of z's strings
// (string_kernel.h), some megabytes at a time, and norms are not used.

// out_ij = K(x_i, z_j). Shapes: x n×p, z m×p, norms n and m (SquaredNorms), out n×m; out aliases
// nothing. Accuracy: as EvaluateKernel, on products from BLAS. Cost: 2nmp flops for each product,
// L1 distance and form that the program uses; each L1 distance or form needs a temporary of out's
// size. Calls BLAS: not on RPC threads.
void KernelBlock(const KernelProgram& program, ConstMatrixView<double> x,
                 const std::vector<double>& x_norms, ConstMatrixView<double> z,
                 const std::vector<double>& z_norms, MatrixView<double> out);

// K(x_i, x_i) of each row, from ‖x_i‖² and, for a program with forms, x: an rbf gives exactly 1.
std::vector<double> KernelDiagonal(const KernelProgram& program, ConstMatrixView<double> x,
                                   const std::vector<double>& x_norms);

// Returns the diagonal for strings whose k_m(x, x) are known for each string kernel m
// (StringSquares): one row for each string.
std::vector<double> StringDiagonal(const KernelProgram& program, ConstMatrixView<double> squares);

// k_m(x, x) for each string and each string kernel m: n×m. REQUIRES: x holds indices of strings,
// and the program has string kernels.
Matrix<double> SelfStringValues(const KernelProgram& program, ConstMatrixView<double> x);

// Lower triangle (with diagonal) of out_ij = K(x_i, x_j) in tiles of 256 rows; the strict upper
// triangle is left as it was. Shapes: x n×p, out n×n. The diagonal is KernelDiagonal's. The bits do
// not depend on the number of threads.
absl::Status KernelGram(const KernelProgram& program, ConstMatrixView<double> x,
                        MatrixView<double> out, const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_BLOCK_H_
