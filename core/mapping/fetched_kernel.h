// A kernel that is not computed here: its values on what a build compares, which came with the
// stream or were asked for.
#ifndef PHIMAP_CORE_MAPPING_FETCHED_KERNEL_H_
#define PHIMAP_CORE_MAPPING_FETCHED_KERNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mapping/build_kernel.h"
#include "core/mapping/build_progress.h"
#include "core/mapping/build_sample.h"
#include "core/mapping/build_spec.h"
#include "core/mapping/outside_values.h"
#include "core/plan/example_block.h"
#include "core/plan/kernel_source.h"
#include "core/plan/plan.h"

namespace phimap {

class FetchedKernel final : public BuildKernel {
 public:
  // Draws the landmarks and asks for all values; reports to BuildStep::kChoose. `spec` and `sample`
  // outlive what comes. REQUIRES: `source` is not null if the kernel is a service's. Errors:
  // ChooseLandmarks, FetchOutsideValues.
  static absl::StatusOr<std::unique_ptr<BuildKernel>> Fetch(const BuildSpec& spec,
                                                            const BuildSample& sample,
                                                            KernelSource* source,
                                                            BuildProgress& progress);

  std::string ToText() const override { return spec_.outside->ToText(); }
  const KernelVerdict& verdict() const override { return values_.verdict; }
  LandmarkTask TaskFor(FloatType serving_type) const override;
  std::vector<int64_t> RowsOfLandmarks(const BuiltMapping& mapping) const override;
  std::vector<double> HeldOutDiagonal() const override { return values_.known.diagonal; }
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const override;
  // Golden rows are values of landmarks, which the artifact shows already.
  std::optional<SelfCheck> GoldenVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;

 private:
  FetchedKernel(const BuildSpec& spec, const BuildSample& sample) : spec_(spec), sample_(sample) {}
  absl::Status FetchFromGram(Checkpoint checkpoint);
  absl::Status FetchFromService(KernelSource& source, BuildProgress& progress,
                                Checkpoint checkpoint);
  // Strings stand in a sample by their places.
  bool of_strings() const { return IsString(sample_.stream.kind()); }
  // The rows of the sample as the service gets them.
  ExampleBlock ExamplesOf(const Matrix<double>& rows) const;
  Matrix<double> HeldOutWithSelfValues(const BuiltMapping& mapping) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  OutsideValues values_;
  // What the builders are given: the values of the landmarks, and the stage with all of them.
  OutsideLandmarks landmarks_;
  // Of a Gram matrix: where the landmarks stood.
  std::vector<int64_t> landmark_rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_FETCHED_KERNEL_H_
