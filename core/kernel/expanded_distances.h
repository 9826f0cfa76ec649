// The form that squared distances of whole rows had in programs of earlier builds.
#ifndef PHIMAP_CORE_KERNEL_EXPANDED_DISTANCES_H_
#define PHIMAP_CORE_KERNEL_EXPANDED_DISTANCES_H_

#include "core/kernel/kernel_program.h"

namespace phimap {

// Returns `program` with each Σ(x_k − a_k)² over whole rows replaced by ‖x‖² + ‖a‖² − 2x·a. The
// compiler emits such a sum only for matern(nu=0.5). Builds that did not emit it wrote the program
// that is returned, so a plan with either program is one of the same kernel. Kernel values differ
// in their rounding alone.
KernelProgram WithExpandedDistances(const KernelProgram& program);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_EXPANDED_DISTANCES_H_
