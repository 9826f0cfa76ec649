// Source of a build's kernel values: a kernel that phimap computes, or a remote kernel.
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
#include "core/landmark/landmark_growth.h"
#include "core/linalg/tiles.h"
#include "core/mapping/build/kernel_verdict.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/landmarks/landmark_mapping.h"

namespace phimap {

// The operations on its kernel that a build needs after landmarks are chosen. The other steps of a
// build do not know which implementation they use.
class BuildKernel {
 public:
  virtual ~BuildKernel() = default;

  // Returns the kernel's text with all parameters resolved.
  virtual std::string ToText() const = 0;
  virtual const KernelVerdict& verdict() const = 0;
  // Returns the input of the mapping's builder. Its views are valid as long as this object.
  virtual LandmarkTask TaskFor(FloatType serving_type) const = 0;

  // LandmarkChoice::pool_trace_residual, which only policy rpcholesky sets.
  virtual std::optional<double> pool_trace_residual() const { return std::nullopt; }
  // Result of growing the landmarks; null if their number was given.
  virtual const LandmarkGrowth* growth() const { return nullptr; }
  // Positions in the stream of the plan's landmarks, if callers need them (precomputed()); else
  // empty.
  virtual std::vector<int64_t> RowsOfLandmarks(const BuiltMapping&) const { return {}; }

  // The functions below are for a mapping built from TaskFor.

  // K(x, x) of the held-out rows.
  virtual std::vector<double> HeldOutDiagonal() const = 0;
  // Measures the spectrum over rows of the pool, for F2 and F3. FAILED_PRECONDITION if there is no
  // spectrum: the pool has no rows, or the kernel is 0 on all of them.
  virtual absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const = 0;
  // Returns reference vectors, or nullopt if there are none.
  virtual std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const = 0;
  // Adds the held-out rows and their kernel to `task`, and calls MeasureHeldOut.
  virtual absl::Status Measure(MeasurementTask task, BuiltMapping& mapping,
                               const TileControl& control, Certificate& certificate) const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_BUILD_KERNEL_H_
