// A kernel that is computed here, with the landmarks that were chosen for it.
#ifndef PHIMAP_CORE_MAPPING_COMPUTED_KERNEL_H_
#define PHIMAP_CORE_MAPPING_COMPUTED_KERNEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build_kernel.h"
#include "core/mapping/build_progress.h"
#include "core/mapping/build_sample.h"
#include "core/mapping/build_spec.h"
#include "core/plan/plan.h"

namespace phimap {

class ComputedKernel final : public BuildKernel {
 public:
  // Resolves gamma, chooses the landmarks and looks at the kernel on them; reports to
  // BuildStep::kChoose. `spec` and `sample` outlive what comes. Errors: ScaleGamma, MedianGamma,
  // ChooseLandmarks, ProbeDefiniteness, VerdictOn, FAILED_PRECONDITION (LANDMARKS_TOO_LONG).
  static absl::StatusOr<std::unique_ptr<BuildKernel>> Prepare(const BuildSpec& spec,
                                                              const BuildSample& sample,
                                                              BuildProgress& progress);

  std::string ToText() const override { return kernel_.ToText(); }
  const KernelVerdict& verdict() const override { return verdict_; }
  LandmarkTask TaskFor(FloatType serving_type) const override;
  std::optional<double> pool_trace_residual() const override { return pool_trace_residual_; }
  std::vector<double> HeldOutDiagonal() const override;
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const override;
  // Only where a made-up row has no features to compare is it moved towards a landmark.
  std::optional<SelfCheck> GoldenVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;

 private:
  ComputedKernel(const BuildSpec& spec, const BuildSample& sample);
  absl::Status Resolve();
  absl::Status Choose(BuildProgress& progress);
  // A plan holds every n-gram of its landmarks.
  absl::Status CheckStrings(ConstMatrixView<double> places) const;
  absl::Status Probe(BuildProgress& progress);
  // Of the held-out rows, as the kernel error is measured on them.
  absl::StatusOr<KernelCentre> CentreOf(const BuiltMapping& mapping,
                                        const Matrix<double>& reference_rows,
                                        const TileControl& control) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  KernelExpression kernel_;
  // The sample's, with a projection and centred on the landmarks where that applies.
  InputStage input_;
  // What the kernel sees without the projection.
  InputStage unprojected_;
  // After the input stage.
  Matrix<double> landmarks_;
  // As the kernel sees them without the projection, where it is centred on them; or empty.
  Matrix<double> unprojected_landmarks_;
  // The first of them as they came, again and again.
  Matrix<double> anchors_;
  std::optional<double> pool_trace_residual_;
  KernelVerdict verdict_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_COMPUTED_KERNEL_H_
