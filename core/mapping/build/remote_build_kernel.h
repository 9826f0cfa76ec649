// A remote kernel in a build. Holds all its values that the build needs; they came with the stream
// or were requested from a kernel service.
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
#include "core/plan/plan.h"

namespace phimap {

class RemoteBuildKernel final : public BuildKernel {
 public:
  // Draws the landmarks and fetches all values; reports to BuildStep::kChoose. `spec` and `sample`
  // must outlive the result. REQUIRES: `source` is not null if a kernel service computes the
  // kernel. Errors: those of LandmarkPolicy::choose and FetchRemoteValues.
  static absl::StatusOr<std::unique_ptr<BuildKernel>> Fetch(const BuildSpec& spec,
                                                            const BuildSample& sample,
                                                            KernelSource* source,
                                                            BuildProgress& progress);

  std::string ToText() const override { return spec_.remote->ToText(); }
  const KernelVerdict& verdict() const override { return values_.verdict; }
  LandmarkTask TaskFor(FloatType serving_type) const override;
  std::vector<int64_t> RowsOfLandmarks(const BuiltMapping& mapping) const override;
  std::vector<double> HeldOutDiagonal() const override { return values_.known.diagonal; }
  absl::StatusOr<Spectrum> SpectrumOf(const BuiltMapping& mapping,
                                      const TileControl& control) const override;
  absl::StatusOr<Matrix<double>> HeldOutCoordinates(const BuiltMapping& mapping,
                                                    FloatType type) const override;
  // Uses the kernel values of some landmarks as rows, because the artifact contains the landmarks
  // anyway.
  std::optional<SelfCheck> ReferenceVectors(const BuiltMapping& mapping) const override;
  absl::Status Measure(MeasurementTask task, BuiltMapping& mapping, const TileControl& control,
                       Certificate& certificate) const override;
  // Values of pool rows cost calls of the user's service, so none are fetched for drift.
  bool PoolRowsAreKnown() const override { return false; }
  EngineRows RowsForDrift(const BuiltMapping& mapping, int64_t pool_rows) const override;

 private:
  RemoteBuildKernel(const BuildSpec& spec, const BuildSample& sample)
      : spec_(spec), sample_(sample) {}
  absl::Status FetchFromGram(Checkpoint checkpoint);
  absl::Status FetchFromService(KernelSource& source, BuildProgress& progress,
                                Checkpoint checkpoint);
  // Whether each row of the sample is the index of a string.
  bool of_strings() const { return IsString(sample_.stream.kind()); }
  // Converts rows of the sample to examples for the service.
  ExampleBlock ExamplesOf(const Matrix<double>& rows) const;
  Matrix<double> HeldOutWithSelfValues(const BuiltMapping& mapping) const;

  const BuildSpec& spec_;
  const BuildSample& sample_;
  RemoteValues values_;
  // Input of the mapping's builder: kernel values of the landmarks, and the feature stage that
  // holds all landmarks.
  RemoteLandmarks landmarks_;
  // Positions of the landmarks in the stream; only for a Gram matrix.
  std::vector<int64_t> landmark_rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_REMOTE_BUILD_KERNEL_H_
