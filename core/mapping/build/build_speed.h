// Measures this machine's speed, with which Work is converted to seconds.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_SPEED_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_SPEED_H_

#include "core/linalg/work.h"

namespace phimap {

// Speed of one thread that has a core to itself.
struct BuildSpeed {
  double product_flops_per_second = 0;
  double elements_per_second = 0;
};

// Measures the CPU time of a product and of a block of rbf values, in shapes typical of builds.
// Takes the best of three runs. Needs about 25 ms and calls BLAS, so do not call it on an RPC
// thread.
BuildSpeed MeasureBuildSpeed();

// Returns an estimate of the CPU time of `work`. The estimate is within a factor of 3 for builds
// with 20 to 4,000 landmarks and up to 2,000 columns (tests/full/build_estimate.sh).
double SecondsOf(const Work& work, const BuildSpeed& speed);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_SPEED_H_
