// Runs kernel programs on rows of products, with vector instructions.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_

#include <cstdint>

#include "core/kernel/kernel_program.h"
#include "core/linalg/panel_product.h"

namespace phimap {

// Operands of a program for one x and the rows a_j. Operands that the program does not use may be
// null.
template <typename T>
struct KernelOperands {
  // x·a_j.
  const T* products = nullptr;
  // ‖x‖² and ‖a_j‖². Without row_norms all squared distances are 0.
  T x_norm = 0;
  const T* row_norms = nullptr;
  // b_j; null: all are 0.
  const T* offsets = nullptr;
  // ‖x − a_j‖₁; null: all are 0.
  const T* l1_distances = nullptr;
  // forms[m][j] = x·A_m a_j.
  const T* const* forms = nullptr;
  // f_m(x), and row_factors[m][j] = f_m(a_j). Without x_factors a factor is f_m(a_j)².
  const T* x_factors = nullptr;
  const T* const* row_factors = nullptr;
};

// out[j] = e(j-th of all operands) for j < count: the elementwise map of one row of a tile. A
// program of two results writes the second ones to out[count + j].
//
// Shapes:   each operand: `count` numbers, out: `count` times the program's results; out may be the
//           products, the L1 distances or one of the forms.
// Range:    a squared distance below 0 counts as 0. REQUIRES: norms are finite if they are used.
// Accuracy: fma for kAffine, correctly rounded + and ·, √ and 1/t, powers by repeated squaring
//           (relative error ≤ n·eps), exp within 1 ULP of float32, 0 below 2^-126, and 1.5 ULP of
//           float64, tanh within 4 ULP, cosines and sines of turns within 3·eps·|a| (float32) or
//           4·eps·|a| (float64); all checked by tests.
// Bits:     element j depends on its own inputs alone; equal on every target with fused
//           multiply-add. Pure, thread-safe, allocates nothing.
void EvaluateKernel(const KernelProgram& program, const KernelOperands<float>& operands,
                    int64_t count, float* out);
void EvaluateKernel(const KernelProgram& program, const KernelOperands<double>& operands,
                    int64_t count, double* out);

// Operands of a program other than the products of a block: x_norms[i] = ‖x_i‖² for each of its
// rows, and ‖a_j‖² and b_j for each a_j. The last two can be read up to
// PanelMatrix::padded_columns.
template <typename T>
struct KernelBlockOperands {
  const T* x_norms = nullptr;
  const T* row_norms = nullptr;
  const T* offsets = nullptr;
};

// Whether EvaluateKernelBlock runs the program: exp(−γ·d²), powers of an affine product, cosines
// and sines of turns. REQUIRES: the operands that the program uses are not null.
bool EvaluatesBlocks(const KernelProgram& program);

// Does the work of EvaluateKernel, with its bits, on products that are still in registers: out[i]
// is row i of `count` numbers (and `count` second ones); only the block's elements of out are
// written. Sets finite[i], if `finite` is not null, to false if a result of row i is not finite.
// REQUIRES: EvaluatesBlocks.
void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<float>& operands,
                         const ProductBlock<float>& products, int64_t count, float* const* out,
                         bool* finite);
void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<double>& operands,
                         const ProductBlock<double>& products, int64_t count, double* const* out,
                         bool* finite);

// The factors of `count` rows: out[m][i] = f_m(x_i) for each factor m of the program, from
// norms[i] = ‖x_i‖² and forms[m][i] = x_iᵀA_m x_i. Nothing aliases.
template <typename T>
void EvaluateFactors(const KernelProgram& program, const T* norms, const T* const* forms,
                     int64_t count, T* const* out);
// out[i] = K(x_i, x_i), from the same operands and the factors.
template <typename T>
void EvaluateSelf(const KernelProgram& program, const T* norms, const T* const* forms,
                  const T* const* factors, int64_t count, T* out);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_
