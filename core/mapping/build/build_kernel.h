// Source of the kernel values of a build: a kernel that is computed here, or a remote kernel.
#ifndef PHIMAP_CORE_MAPPING_BUILD_BUILD_KERNEL_H_
#define PHIMAP_CORE_MAPPING_BUILD_BUILD_KERNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/certificate/measurement.h"
#include "core/certificate/spectrum.h"
#include "core/landmark/count_rule.h"
#include "core/linalg/tiles.h"
#include "core/mapping/build/kernel_verdict.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/landmarks/landmark_mapping.h"

namespace phimap {

// All that a build asks of its kernel once landmarks are chosen. No other step of it knows which
// kind of kernel it has.
class BuildKernel {
 public:
  virtual ~BuildKernel() = default;

  // With all parameters resolved.
  virtual std::string ToText() const = 0;
  virtual const KernelVerdict& verdict() const = 0;
  // Input of the builders of mappings. Views live as long as this.
  virtual LandmarkTask TaskFor(FloatType serving_type) const = 0;

  // rpcholesky: as LandmarkChoice::pool_trace_residual.
  virtual std::optional<double> pool_trace_residual() const { return std::nullopt; }
  // The number of landmarks that the spec's rule found; null if the spec gives the number.
  virtual const LandmarkCount* found_count() const { return nullptr; }
  // Positions in the stream of the landmarks in the plan, if the caller must know them.
  virtual std::vector<int64_t> RowsOfLandmarks(const BuiltMapping&) const { return {}; }

  // The rest is of a mapping that was built of TaskFor.

  // K(x, x) of the held-out rows.
  virtual std::vector<double> HeldOutDiagonal() const = 0;
  // For F2 and F3, over rows of the pool. FAILED_PRECONDITION if it does not exist: no rows, or a
  // kernel that is 0 on all of them.
  virtual absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const = 0;
  // Generated rows, and their features.
  virtual std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const = 0;
  // Adds held-out rows and the kernel on them to `task`, and measures.
  virtual absl::Status Measure(MeasurementTask task, BuiltMapping& mapping,
                               const TileControl& control, Certificate& certificate) const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_KERNEL_H_
