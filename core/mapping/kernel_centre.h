// What centring takes off a kernel that is computed here.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_CENTRE_H_
#define PHIMAP_CORE_MAPPING_KERNEL_CENTRE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// The mean of K(x, z_j) over all z_j, of each row x. Shapes: x n×p, z m×p. The same bits for any
// number of threads. Cost: an n×m kernel block; 256·m·8 bytes a thread. Errors: what `control`
// returns. Calls BLAS. REQUIRES: z has rows.
absl::StatusOr<std::vector<double>> MeanValues(const KernelProgram& program,
                                               ConstMatrixView<double> x, ConstMatrixView<double> z,
                                               const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_CENTRE_H_
