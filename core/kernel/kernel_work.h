// Cost of evaluating a kernel, and dimension of its φ-space, for forecasts.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_WORK_H_
#define PHIMAP_CORE_KERNEL_KERNEL_WORK_H_

#include <cstdint>
#include <optional>

#include "core/kernel/kernel_expression.h"
#include "core/linalg/work.h"

namespace phimap {

// Returns a bound on the dimension of φ, and so on the rank of any Gram matrix, for rows of
// `columns` numbers. The bound is p for linear(), the number of monomials for poly, and sums and
// products of these for sums and products of kernels. nullopt if there is no bound, as for rbf, or
// if it is over 2^40. REQUIRES: columns >= 1.
std::optional<int64_t> FeatureDimension(const KernelExpression& kernel, int64_t columns);

// Cost of one kernel value.
struct ValueWork {
  // Products over the columns: 0 for a kernel that needs none, such as a Laplacian or delta().
  double products = 1;
  // Operations of the kernel's program relative to those of an rbf, including L1 distances,
  // bilinear forms, column sums and string kernels.
  double elements = 1;
};

// Returns the cost of one kernel value on rows of `columns` numbers.
ValueWork WorkOfValue(const KernelExpression& kernel, int64_t columns);

// Returns the work of a KernelBlock of n×m values on rows of `columns` numbers.
Work WorkOfKernelBlock(double n, double m, double columns, const ValueWork& value);

// Returns the number of values that KernelGram and the certificate compute for a triangle: in tiles
// of 256 rows, each up to the end of the tile's last row.
double TiledTriangle(int64_t n);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_WORK_H_
