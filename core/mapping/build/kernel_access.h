// The access of a build to its kernel, which is computed here or remote.
#ifndef PHIMAP_CORE_MAPPING_BUILD_KERNEL_ACCESS_H_
#define PHIMAP_CORE_MAPPING_BUILD_KERNEL_ACCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/certificate/definiteness.h"
#include "core/certificate/measurement.h"
#include "core/certificate/spectrum.h"
#include "core/landmark/count_rule.h"
#include "core/linalg/tiles.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/plan/example_block.h"

namespace phimap {

// The verdict on a kernel that is not positive semidefinite by construction, which some mappings
// accept.
struct KernelVerdict {
  // Warning for the certificate; empty if there is none.
  std::string warning;
  // Whether the kernel is known to be indefinite or not symmetric. Only F1 accepts such a
  // similarity.
  bool indefinite = false;
};

// Returns the verdict for the result of a probe. FAILED_PRECONDITION
// (KERNEL_NOT_POSITIVE_SEMIDEFINITE, field "kernel") if the probe is indefinite and the mapping
// needs a positive semidefinite kernel. REQUIRES: the mapping has landmarks.
absl::StatusOr<KernelVerdict> VerdictOn(absl::string_view kernel_text, const MappingSpec& mapping,
                                        const DefinitenessProbe& probe);

// Returns the verdict on a kernel that is not symmetric. `asymmetry` is a text that shows two
// landmarks x and y for which K(x, y) and K(y, x) differ. FAILED_PRECONDITION
// (KERNEL_NOT_SYMMETRIC, field "kernel") unless the mapping accepts any similarity function.
absl::StatusOr<KernelVerdict> VerdictOnAsymmetry(absl::string_view kernel_text,
                                                 const MappingSpec& mapping,
                                                 absl::string_view asymmetry);

// Rows in the form that the plan's engine takes.
struct EngineRows {
  // The last rows of the pool, as many as were asked for.
  Matrix<double> pool;
  // The held-out rows. `owned` may hold them.
  ConstMatrixView<double> held_out;
  Matrix<double> owned;
  // Null unless a row holds the index of a string.
  const std::vector<std::string>* strings = nullptr;
  // Whether a column of a row is a column of the stream.
  bool has_columns = false;
};

// Interface through which the steps of a build use the kernel once the landmarks are chosen. The
// other steps need not know whether the kernel is computed here or remote.
class KernelAccess {
 public:
  virtual ~KernelAccess() = default;

  // Returns the kernel's text with all parameters resolved.
  virtual std::string ToText() const = 0;
  virtual const KernelVerdict& verdict() const = 0;
  // Returns the input for the mapping's builder. Its views are valid as long as this object.
  virtual LandmarkTask TaskFor(FloatType serving_type) const = 0;

  // The value of LandmarkChoice::pool_trace_residual; nullopt if the policy does not compute it.
  virtual std::optional<double> pool_trace_residual() const { return std::nullopt; }
  // The number of landmarks that the spec's rule found; null if the spec gives the number.
  virtual const LandmarkCount* found_count() const { return nullptr; }
  // Returns the positions in the stream of the plan's landmarks, or an empty list if callers do not
  // need them.
  virtual std::vector<int64_t> RowsOfLandmarks(const BuiltMapping&) const { return {}; }

  // REQUIRES for the functions below: the mapping was built from TaskFor's result.

  // Returns K(x, x) of the held-out rows.
  virtual std::vector<double> HeldOutDiagonal() const = 0;
  // Returns the spectrum over held-out rows, for F2 and F3. FAILED_PRECONDITION if there is none,
  // because there are fewer than kMinHeldOutRows of them or the kernel is 0 on all.
  virtual absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping,
                                              const TileControl& control) const = 0;
  // Returns coordinates of the first held-out rows, at most kMaxFidelityRows, whose inner products
  // are those of a mapping built for `type`, without rounding of the features. If the mapping has a
  // factor, they are the coordinates L⁻¹·k_r(x) in the span of its pivots, followed by those along
  // its tail; otherwise they are the features of its reference plan.
  virtual absl::StatusOr<Matrix<double>> HeldOutCoordinates(const BuiltMapping& mapping,
                                                            FloatType type) const = 0;
  // Returns the reference vectors: generated rows with their features.
  virtual std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const = 0;
  // Adds the held-out rows, and the kernel on them, to `task`, and makes the measurements.
  virtual absl::Status Measure(MeasurementTask task, BuiltMapping& mapping,
                               const TileControl& control, Certificate& certificate) const = 0;
  // Whether RowsForDrift can return rows of the pool.
  virtual bool PoolRowsAreKnown() const = 0;
  // Returns the rows from which the drift reference is made: the held-out rows, and at most
  // `pool_rows` rows of the pool that are no landmarks.
  virtual EngineRows RowsForDrift(const BuiltMapping& mapping, int64_t pool_rows) const = 0;
};

// Returns the kernel of the spec with a number for every gamma (ScaleGamma, MedianGamma).
absl::StatusOr<KernelExpression> ResolvedKernel(const BuildSpec& spec, const BuildSample& sample);

// Returns the access to a kernel that is computed here. Resolves gamma and chooses the landmarks.
// If the kernel is not proven to be positive semidefinite, tests it on the landmarks. Reports to
// BuildStep::kChoose. `spec` and `sample` must outlive the result. Errors: those of ScaleGamma,
// MedianGamma, LandmarkPolicy::choose, CountRule::find, ProbeDefiniteness and VerdictOn;
// FAILED_PRECONDITION (LANDMARKS_TOO_LONG).
absl::StatusOr<std::unique_ptr<KernelAccess>> PrepareComputedKernel(const BuildSpec& spec,
                                                                    const BuildSample& sample,
                                                                    BuildProgress& progress);

// Returns the access to a remote kernel, whose values came with the stream or are requested from a
// kernel service. Draws the landmarks and fetches all values; reports to BuildStep::kChoose. `spec`
// and `sample` must outlive the result. REQUIRES: `source` is not null if a kernel service computes
// the kernel. Errors: those of LandmarkPolicy::choose and FetchRemoteValues.
absl::StatusOr<std::unique_ptr<KernelAccess>> FetchRemoteKernel(const BuildSpec& spec,
                                                                const BuildSample& sample,
                                                                KernelSource* source,
                                                                BuildProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_KERNEL_ACCESS_H_
