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
  // Resolves gamma and chooses the landmarks. If the kernel is not proven to be positive
  // semidefinite, tests it on the landmarks. Reports to BuildStep::kChoose. `spec` and `sample`
  // must outlive the result. Errors: those of ScaleGamma, MedianGamma, LandmarkPolicy::choose,
  // CountRule::find, ProbeDefiniteness and VerdictOn; FAILED_PRECONDITION (LANDMARKS_TOO_LONG).
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
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping,
                                      const TileControl& control) const override;
  absl::StatusOr<Matrix<double>> HeldOutCoordinates(const BuiltMapping& mapping,
                                                    FloatType type) const override;
  // Uses generated rows. A row is moved towards a landmark only if its features are not worth
  // comparing (MakeSelfCheck).
  std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;
  bool PoolRowsAreKnown() const override { return true; }
  EngineRows RowsForDrift(const BuiltMapping& mapping, int64_t pool_rows) const override;

 private:
  ComputedKernel(const BuildSpec& spec, const BuildSample& sample);
  // Returns an error if the stream has negative numbers in columns where the kernel accepts none.
  absl::Status CheckSigns() const;
  absl::Status Resolve();
  absl::Status Choose(BuildProgress& progress);
  // Returns the rows that the policy chooses. If a rule finds the number of landmarks, returns as
  // many as suffice.
  absl::StatusOr<LandmarkChoice> ChooseRows(BuildProgress& progress);
  // Uses the spec's rule to find how many of the chosen rows suffice, and drops the others.
  absl::Status FindCount(LandmarkChoice& choice, const TileControl& control);
  // Returns an error if the landmarks have too many n-grams, because a plan stores all of them.
  absl::Status CheckStrings(ConstMatrixView<double> places) const;
  absl::Status Probe(BuildProgress& progress);
  // Returns slots of the last rows of the pool that differ from all landmarks. The pool is in
  // random order, so they are a uniform sample of these rows.
  std::vector<int64_t> SlotsBesideLandmarks(int64_t at_most) const;
  // Returns MeasurementTask::pool_share.
  double PoolShare() const;
  // Returns the kernel's centre for the held-out rows. It must be the centre of the kernel whose
  // error is measured.
  absl::StatusOr<KernelCentre> CentreOf(const BuiltMapping& mapping,
                                        const Matrix<double>& reference_rows,
                                        const TileControl& control) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  KernelExpression kernel_;
  // The sample's input stage, with the projection of the columns if there is one, and centred on
  // the landmarks if the kernel is translation-invariant.
  InputStage input_;
  // The input stage without the projection.
  InputStage unprojected_;
  // Landmarks after the input stage.
  Matrix<double> landmarks_;
  // Landmarks after the stage without the projection, if the mapping both projects the columns and
  // centres the kernel; else empty.
  Matrix<double> unprojected_landmarks_;
  // Points towards which reference vectors may be moved: the first landmarks before the input
  // stage, repeated if there are too few.
  Matrix<double> anchors_;
  std::optional<double> pool_trace_residual_;
  std::optional<LandmarkCount> found_count_;
  KernelVerdict verdict_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_COMPUTED_KERNEL_H_
