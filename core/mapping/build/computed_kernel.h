// A kernel that is computed here, with the landmarks that were chosen for it.
#ifndef PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_
#define PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/landmark_policy.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build/build_kernel.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/plan.h"

namespace phimap {

class ComputedKernel final : public BuildKernel {
 public:
  // Resolves gamma, chooses the landmarks and looks at the kernel on them; reports to
  // BuildStep::kChoose. `spec` and `sample` outlive the result. Errors: ScaleGamma, MedianGamma,
  // LandmarkPolicy::choose, CountRule::find, ProbeDefiniteness, VerdictOn, FAILED_PRECONDITION
  // (LANDMARKS_TOO_LONG).
  static absl::StatusOr<std::unique_ptr<BuildKernel>> Prepare(const BuildSpec& spec,
                                                              const BuildSample& sample,
                                                              BuildProgress& progress);

  std::string ToText() const override { return kernel_.ToText(); }
  const KernelVerdict& verdict() const override { return verdict_; }
  LandmarkTask TaskFor(FloatType serving_type) const override;
  std::optional<double> pool_trace_residual() const override { return pool_trace_residual_; }
  const LandmarkCount* found_count() const override {
    return found_count_.has_value() ? &*found_count_ : nullptr;
  }
  std::vector<double> HeldOutDiagonal() const override;
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const override;
  // Only where a made-up row has no features to compare is it moved towards a landmark.
  std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;

 private:
  ComputedKernel(const BuildSpec& spec, const BuildSample& sample);
  // Whether the stream has negative numbers where the kernel takes none.
  absl::Status CheckSigns() const;
  absl::Status Resolve();
  absl::Status Choose(BuildProgress& progress);
  // Rows by the policy, as many as suffice.
  absl::StatusOr<LandmarkChoice> ChooseRows(BuildProgress& progress);
  // Has the spec's rule find how many of the chosen rows suffice, and drops the others.
  absl::Status FindCount(LandmarkChoice& choice, const TileControl& control);
  // A plan holds every n-gram of its landmarks.
  absl::Status CheckStrings(ConstMatrixView<double> places) const;
  absl::Status Probe(BuildProgress& progress);
  // Centre for the held-out rows, as the kernel error is measured on them.
  absl::StatusOr<KernelCentre> CentreOf(const BuiltMapping& mapping,
                                        const Matrix<double>& reference_rows,
                                        const TileControl& control) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  KernelExpression kernel_;
  // The sample's, with a projection and centred on the landmarks where that applies.
  InputStage input_;
  // Input of the kernel without the projection.
  InputStage unprojected_;
  // After the input stage.
  Matrix<double> landmarks_;
  // Landmarks without the projection, where the kernel is centred on them; or empty.
  Matrix<double> unprojected_landmarks_;
  // The first of them before the input stage, repeated.
  Matrix<double> anchors_;
  std::optional<double> pool_trace_residual_;
  std::optional<LandmarkCount> found_count_;
  KernelVerdict verdict_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_
