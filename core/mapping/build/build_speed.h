// Measures the building speed of this machine, which turns Work into seconds.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_SPEED_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_SPEED_H_

#include "core/linalg/work.h"

namespace phimap {

// Speed of one thread that has a core to itself.
struct BuildSpeed {
  double product_flops_per_second = 0;
  double elements_per_second = 0;
};

// Measures a product and a block of rbf values of the shapes in builds, in CPU time, best of three.
// Takes about 25 ms and calls BLAS: not on an RPC thread.
BuildSpeed MeasureBuildSpeed();

// Within a factor of 3 of the CPU time of builds of 20 to 4,000 landmarks on up to 2,000 columns
// (tests/full/build_estimate.sh).
double SecondsOf(const Work& work, const BuildSpeed& speed);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_SPEED_H_
