// Forecasts the cost of a build, and measures this machine's speed, with which Work is converted to
// seconds.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_COST_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_COST_H_

#include <cstdint>

#include "core/linalg/work.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// Forecast of a build's cost. The forecast is an upper bound, because it assumes that as many
// landmarks as possible are independent: all of them, or the dimension of the kernel's φ-space if
// that is less (FeatureDimension). A lower numerical rank makes the build cheaper.
//
// If the spec leaves the serving type open, the forecasts of work and of the artifact assume
// float32, which is nearly always chosen. The forecast of memory assumes float64.
struct BuildCost {
  Work work;
  // Final memory of the stream's sample (as StreamSample::memory_bound_bytes), and peak memory of
  // the computation besides the sample, without the BLAS library's own buffers.
  int64_t sample_bytes = 0;
  int64_t compute_bytes = 0;
  int64_t artifact_bytes = 0;
  // Number of features.
  int64_t output_columns = 0;

  int64_t memory_bytes() const { return sample_bytes + compute_bytes; }
};

// Returns the cost of building a version from `rows` rows of `columns` numbers on at most `threads`
// threads. The forecast of memory includes one tile per thread. Takes microseconds. Pure.
//
// REQUIRES: spec.Validate() and spec.CheckColumns(columns) are OK, rows >= 1, 1 <= columns <=
// kMaxColumns.
BuildCost CostOfBuild(const BuildSpec& spec, int64_t rows, int64_t columns, int threads = 1);

// Approximate shares of a build's time that its steps take, for progress reports. The sum is 1.
struct BuildShares {
  double choose = 0;
  double mapping = 0;
  double spectrum = 0;
  double measurement = 0;
};
// Returns the shares for a build. REQUIRES: the same as CostOfBuild.
BuildShares SharesOfBuild(const BuildSpec& spec, int64_t rows, int64_t columns);

// Returns the memory to reserve for a build whose stream has the maximum length.
int64_t ReservedBytes(const BuildSpec& spec, int64_t columns, int threads = 1);
// Like the function above, for a stream that began with examples of this kind. The spec alone is
// not enough, because a spec with a kernel service does not say whether the examples are strings.
// Strings need memory for the sample and for a copy of the strings that are sent to the service.
int64_t ReservedBytes(const BuildSpec& spec, ExampleKind kind, int64_t columns, int threads);

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

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_COST_H_
