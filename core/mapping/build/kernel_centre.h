// Means of a computed kernel over landmarks, which centring removes.
#ifndef PHIMAP_CORE_MAPPING_BUILD_KERNEL_CENTRE_H_
#define PHIMAP_CORE_MAPPING_BUILD_KERNEL_CENTRE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Returns for each row of x the mean of K(x, z_j) over all rows z_j. Shapes: x n×p, z m×p. The bits
// do not depend on the number of threads. Cost: an n×m kernel block; 256·m·8 bytes per thread.
// Errors: those of `control`. Calls BLAS. REQUIRES: z has rows.
absl::StatusOr<std::vector<double>> MeanValues(const KernelProgram& program,
                                               ConstMatrixView<double> x, ConstMatrixView<double> z,
                                               const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_KERNEL_CENTRE_H_
