// Runs kernel programs on rows of products, with vector instructions.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_
#define PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_

#include <cstdint>

#include "core/kernel/kernel_program.h"

namespace phimap {

// out[j] = e(products[j], x_norm, row_norms[j]) for j < count: the elementwise map of one row of a
// tile.
//
// Shapes:   products, row_norms, out: `count` numbers; out may be products. x_norm and row_norms
// are squared Euclidean
//           norms and are read only by programs that use them (row_norms may then be null
//           otherwise).
// Range:    a squared distance below 0 counts as 0. REQUIRES: norms are finite if they are used.
// Accuracy: fma for kAffine, correctly rounded + and ·, powers by repeated squaring (relative error
// ≤ n·eps), exp within
//           1 ULP of float32, 0 below 2^-126, and 1.5 ULP of float64 (checked by a test).
// Bits:     element j depends on its own inputs alone; equal on every target with fused
// multiply-add. Pure, thread-safe, allocates nothing.
void EvaluateKernel(const KernelProgram& program, const float* products, float x_norm,
                    const float* row_norms, int64_t count, float* out);
void EvaluateKernel(const KernelProgram& program, const double* products, double x_norm,
                    const double* row_norms, int64_t count, double* out);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_EVALUATOR_H_
