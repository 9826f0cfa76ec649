// Cost of evaluating a kernel, and dimension of its φ-space, for forecasts.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_WORK_H_
#define PHIMAP_CORE_KERNEL_KERNEL_WORK_H_

#include <cstdint>
#include <optional>

#include "core/kernel/kernel_expression.h"
#include "core/linalg/work.h"

namespace phimap {

// Returns a bound on the dimension of φ for rows of `columns` numbers. The rank of a Gram matrix is
// at most this bound. For linear() it is p, the number of columns, and for poly it is the number of
// monomials. For sums and products of kernels, it is the sum and product of their bounds. Returns
// nullopt if there is no bound, as for rbf, or if it is over 2^40. REQUIRES: columns >= 1.
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

// Returns the number of values that KernelGram and the certificate compute for a lower triangle of
// n rows. They compute tiles of 256 rows. All rows of a tile reach to the diagonal of the tile's
// last row.
double TiledTriangle(int64_t n);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_WORK_H_
