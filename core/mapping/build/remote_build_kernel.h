// A remote kernel under a build: its values on the rows that the build compares, which came with
// the stream or were asked for.
#ifndef PHIMAP_CORE_MAPPING_BUILD_REMOTE_BUILD_KERNEL_H_
#define PHIMAP_CORE_MAPPING_BUILD_REMOTE_BUILD_KERNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mapping/build/build_kernel.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/remote_values.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/example_block.h"
#include "core/plan/kernel_source.h"
#include "core/plan/plan.h"

namespace phimap {

class RemoteBuildKernel final : public BuildKernel {
 public:
  // Draws the landmarks and asks for all values; reports to BuildStep::kChoose. `spec` and `sample`
  // outlive the result. REQUIRES: `source` is not null if the kernel is a service's. Errors:
  // ChooseLandmarks, FetchRemoteValues.
  static absl::StatusOr<std::unique_ptr<BuildKernel>> Fetch(const BuildSpec& spec,
                                                            const BuildSample& sample,
                                                            KernelSource* source,
                                                            BuildProgress& progress);

  std::string ToText() const override { return spec_.remote->ToText(); }
  const KernelVerdict& verdict() const override { return values_.verdict; }
  LandmarkTask TaskFor(FloatType serving_type) const override;
  std::vector<int64_t> RowsOfLandmarks(const BuiltMapping& mapping) const override;
  std::vector<double> HeldOutDiagonal() const override { return values_.known.diagonal; }
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping) const override;
  // Reference vectors are values of landmarks, which the artifact shows already.
  std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;

 private:
  RemoteBuildKernel(const BuildSpec& spec, const BuildSample& sample)
      : spec_(spec), sample_(sample) {}
  absl::Status FetchFromGram(Checkpoint checkpoint);
  absl::Status FetchFromService(KernelSource& source, BuildProgress& progress,
                                Checkpoint checkpoint);
  // Whether rows of the sample are places of strings.
  bool of_strings() const { return IsString(sample_.stream.kind()); }
  // The rows of the sample as the service gets them.
  ExampleBlock ExamplesOf(const Matrix<double>& rows) const;
  Matrix<double> HeldOutWithSelfValues(const BuiltMapping& mapping) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  RemoteValues values_;
  // Input of the builders: the values of the landmarks, and the remote stage with all of them.
  RemoteLandmarks landmarks_;
  // For a Gram matrix: positions of the landmarks.
  std::vector<int64_t> landmark_rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_REMOTE_BUILD_KERNEL_H_
