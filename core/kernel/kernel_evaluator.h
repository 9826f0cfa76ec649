// Runs kernel programs on rows of products, with vector instructions.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_

#include <cstdint>

#include "core/kernel/kernel_program.h"
#include "core/linalg/panel_product.h"

namespace phimap {

// Operands of a program for one row x and the rows a_j. Operands that the program does not use are
// not read, and may be null.
template <typename T>
struct KernelOperands {
  // x·a_j.
  const T* products = nullptr;
  // ‖x‖² and ‖a_j‖². If row_norms is null, all squared distances are 0.
  T x_norm = 0;
  const T* row_norms = nullptr;
  // The offsets b_j. If null, all are 0.
  const T* offsets = nullptr;
  // ‖x − a_j‖₁. If null, all are 0.
  const T* l1_distances = nullptr;
  // forms[m][j] = x·A_m a_j.
  const T* const* forms = nullptr;
  // x_factors[m] = f_m(x) and row_factors[m][j] = f_m(a_j) for each factor f_m. If x_factors is
  // null, the program reads f_m(a_j)² in place of f_m(x)·f_m(a_j).
  const T* x_factors = nullptr;
  const T* const* row_factors = nullptr;
};

// Runs the program once for each j < count, on the j-th elements of all operands, and writes the
// result to out[j]. This evaluates one row of a tile. If the program has two results, the second is
// written to out[count + j].
//
// Shapes:   each operand has `count` numbers, `out` has `count` times the program's results. `out`
//           may alias the products, the L1 distances or one of the forms.
// Range:    a squared distance below 0 is taken as 0. REQUIRES: norms are finite if they are used.
// Accuracy: fma for kAffine. +, ·, √ and 1/t are correctly rounded. Powers are computed by repeated
//           squaring (relative error ≤ n·eps). exp is within 1 ULP of float32 (0 for t < -87) and
//           1.5 ULP of float64; tanh within 4 ULP. Cosines and sines of turns are within 3·eps·|a|
//           (float32) or 4·eps·|a| (float64). Tests check all of these.
// Bits:     those of element j depend only on the operands of element j. They are equal on every
//           target with fused multiply-add. Pure, thread-safe, allocates nothing.
void EvaluateKernel(const KernelProgram& program, const KernelOperands<float>& operands,
                    int64_t count, float* out);
void EvaluateKernel(const KernelProgram& program, const KernelOperands<double>& operands,
                    int64_t count, double* out);

// Operands of a program for a block, in addition to the products. For each row x_i, x_norms[i] is
// ‖x_i‖². For each row a_j, row_norms[j] is ‖a_j‖², and offsets[j] is b_j. row_norms and offsets
// must be readable up to PanelMatrix::padded_columns.
template <typename T>
struct KernelBlockOperands {
  const T* x_norms = nullptr;
  const T* row_norms = nullptr;
  const T* offsets = nullptr;
};

// Returns whether EvaluateKernelBlock can run the program, which must be exp(−γ·d²), a power of an
// affine product, or cosines and sines of angles in turns.
bool EvaluatesBlocks(const KernelProgram& program);

// Evaluates the program on the products of a block before they are written to memory. The bits are
// those of EvaluateKernel. out[i] points to row i of the output, which has `count` numbers. If the
// program has two results, `count` second results follow. Only the elements of the block are
// written. If `finite` is not null, sets finite[i] to false if a result of row i is not finite.
// REQUIRES: EvaluatesBlocks, and the operands that the program uses are not null.
void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<float>& operands,
                         const ProductBlock<float>& products, int64_t count, float* const* out,
                         bool* finite);
void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<double>& operands,
                         const ProductBlock<double>& products, int64_t count, double* const* out,
                         bool* finite);

// Computes the factors of `count` rows x_i: out[m][i] = f_m(x_i) for each factor f_m of the
// program. Reads norms[i] = ‖x_i‖² and forms[m][i] = x_iᵀA_m x_i. Nothing may alias.
template <typename T>
void EvaluateFactors(const KernelProgram& program, const T* norms, const T* const* forms,
                     int64_t count, T* const* out);
// Computes out[i] = K(x_i, x_i) from the norms and forms that EvaluateFactors reads, and the
// factors that it computes.
template <typename T>
void EvaluateSelf(const KernelProgram& program, const T* norms, const T* const* forms,
                  const T* const* factors, int64_t count, T* out);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_
