// A kernel that phimap computes, with the landmarks chosen for it.
#ifndef PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_
#define PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/landmark/landmark_growth.h"
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
  // Resolves gamma, chooses the landmarks, and tests whether an unproven kernel is positive
  // semidefinite on them. Reports to BuildStep::kChoose. `spec` and `sample` must outlive the
  // result. Errors: those of ScaleGamma, MedianGamma, LandmarkPolicy::choose, GrowLandmarks,
  // ProbeDefiniteness and VerdictOn; INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE) for negative numbers
  // that the kernel does not take; FAILED_PRECONDITION (LANDMARKS_TOO_LONG).
  static absl::StatusOr<std::unique_ptr<BuildKernel>> Prepare(const BuildSpec& spec,
                                                              const BuildSample& sample,
                                                              BuildProgress& progress);

  std::string ToText() const override { return kernel_.ToText(); }
  const KernelVerdict& verdict() const override { return verdict_; }
  LandmarkTask TaskFor(FloatType serving_type) const override;
  std::optional<double> pool_trace_residual() const override { return pool_trace_residual_; }
  const LandmarkGrowth* growth() const override {
    return growth_.has_value() ? &*growth_ : nullptr;
  }
  std::vector<double> HeldOutDiagonal() const override;
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const override;
  // Uses generated rows, moved towards a landmark if their features are not worth comparing
  // (MakeSelfCheck).
  std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;

 private:
  ComputedKernel(const BuildSpec& spec, const BuildSample& sample);
  // Returns an error if the stream has negative numbers in columns where the kernel takes none.
  absl::Status CheckSigns() const;
  absl::Status Resolve();
  absl::Status Choose(BuildProgress& progress);
  // Chooses landmarks by the policy, and grows them if their number is not given.
  absl::StatusOr<LandmarkChoice> ChooseRows(BuildProgress& progress);
  // Cuts the chosen rows to the number that suffices (GrowLandmarks).
  absl::Status Grow(LandmarkChoice& choice, const TileControl& control);
  // Returns an error if the landmarks' strings are too long for the plan's index, which holds every
  // n-gram of them.
  absl::Status CheckStrings(ConstMatrixView<double> places) const;
  absl::Status Probe(BuildProgress& progress);
  // Returns the centre of the kernel for the held-out rows, for measuring the kernel error.
  absl::StatusOr<KernelCentre> CentreOf(const BuiltMapping& mapping,
                                        const Matrix<double>& reference_rows,
                                        const TileControl& control) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  KernelExpression kernel_;
  // The sample's input stage, with a projection and centred on the landmarks if these apply.
  InputStage input_;
  // The same input stage without the projection.
  InputStage unprojected_;
  // Landmarks after the input stage.
  Matrix<double> landmarks_;
  // Landmarks after `unprojected_`, if there is a projection and the kernel is centred; else empty.
  Matrix<double> unprojected_landmarks_;
  // The first landmarks before the input stage, repeated up to kMaxSelfCheckRows rows.
  Matrix<double> anchors_;
  std::optional<double> pool_trace_residual_;
  std::optional<LandmarkGrowth> growth_;
  KernelVerdict verdict_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_
