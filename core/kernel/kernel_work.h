// Cost of evaluating a kernel, and the dimensions of its φ-space; for forecasts.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_WORK_H_
#define PHIMAP_CORE_KERNEL_KERNEL_WORK_H_

#include <cstdint>
#include <optional>

#include "core/kernel/kernel_expression.h"
#include "core/linalg/work.h"

namespace phimap {

// A bound on the dimension of φ for rows of `columns` numbers: p for linear(), the number of
// monomials for poly, sums and products of these for sums and products. No Gram matrix has a higher
// rank. nullopt: no bound, as for rbf, or one over 2^40. REQUIRES: columns >= 1.
std::optional<int64_t> FeatureDimension(const KernelExpression& kernel, int64_t columns);

// Cost of one kernel value.
struct ValueWork {
  // Products over the columns: 0 for a kernel that needs none, such as a Laplacian or delta().
  double products = 1;
  // Cost of the operations of the kernel's program relative to an rbf kernel, including L1
  // distances and bilinear forms.
  double elements = 1;
};

// On rows of `columns` numbers.
ValueWork WorkOfValue(const KernelExpression& kernel, int64_t columns);

// KernelBlock of n×m values on rows of `columns` numbers.
Work WorkOfKernelBlock(double n, double m, double columns, const ValueWork& value);

// The values of a triangle that is computed in tiles of 256 rows up to the end of each tile's last
// row, as KernelGram and the certificate do.
double TiledTriangle(int64_t n);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_WORK_H_
