// Computes means of a kernel over landmarks. Centring the kernel removes these means.
#ifndef PHIMAP_CORE_MAPPING_BUILD_KERNEL_CENTRE_H_
#define PHIMAP_CORE_MAPPING_BUILD_KERNEL_CENTRE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Returns, for each of the n rows x_i of `x`, the mean of K(x_i, z_j) over the m rows z_j of `z`.
// Both matrices have p columns. The result does not depend on the number of threads, not even in
// the last bit.
//
// Cost: an n×m kernel block; 256·m·8 bytes per thread. Errors: those of `control`. Calls BLAS.
// REQUIRES: z has rows.
absl::StatusOr<std::vector<double>> MeanValues(const KernelProgram& program,
                                               ConstMatrixView<double> x, ConstMatrixView<double> z,
                                               const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_KERNEL_CENTRE_H_
