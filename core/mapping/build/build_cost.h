// Cost of a build, before anything runs.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_COST_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_COST_H_

#include <cstdint>

#include "core/linalg/work.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// An upper forecast: all landmarks are taken to be independent unless the kernel's φ-space has
// fewer dimensions (FeatureDimension). If the numerical rank is lower, everything is less. A
// serving type that is left open counts as float32 in work and artifact, which it nearly always
// becomes, and as float64 in memory.
struct BuildCost {
  Work work;
  // Final size of the stream's sample, like StreamSample::memory_bound_bytes for a longer stream;
  // and the largest memory of computing beside it, without the BLAS library's own buffers.
  int64_t sample_bytes = 0;
  int64_t compute_bytes = 0;
  int64_t artifact_bytes = 0;

  int64_t memory_bytes() const { return sample_bytes + compute_bytes; }
};

// The cost of a version of `rows` streamed rows of `columns` numbers, computed on at most `threads`
// threads: each holds a tile of its own. REQUIRES: spec.Validate() is
// and CheckColumns(columns) are OK, rows >= 1, 1 <= columns <= kMaxColumns. Cost: microseconds.
// Pure.
BuildCost CostOfBuild(const BuildSpec& spec, int64_t rows, int64_t columns, int threads = 1);

// Shares of a build's time for its steps, roughly, with the sum 1: for the progress.
struct BuildShares {
  double choose = 0;
  double mapping = 0;
  double spectrum = 0;
  double measurement = 0;
};
// REQUIRES: as CostOfBuild.
BuildShares SharesOfBuild(const BuildSpec& spec, int64_t rows, int64_t columns);

// The memory of a build whose stream is as long as it may be.
int64_t ReservedBytes(const BuildSpec& spec, int64_t columns, int threads = 1);
// Memory to reserve for a stream that began with examples of this kind. The spec of a remote kernel
// does not say whether its examples are strings. Strings are kept in the sample, and those that the
// service is asked about are kept twice.
int64_t ReservedBytes(const BuildSpec& spec, ExampleKind kind, int64_t columns, int threads);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_COST_H_
