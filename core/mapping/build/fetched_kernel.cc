
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/fidelity.h"
#include "core/certificate/held_out_features.h"
#include "core/certificate/self_check.h"
#include "core/linalg/blas.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/kernel_access.h"
#include "core/mapping/build/remote_values.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/example_block.h"
#include "core/plan/plan.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// A remote kernel in a build. Holds all its values that the build needs; they came with the stream
// or were requested from a kernel service.
class FetchedKernel final : public KernelAccess {
 public:
  FetchedKernel(const BuildSpec& spec, const BuildSample& sample) : spec_(spec), sample_(sample) {}

  // Draws the landmarks and fetches all values.
  absl::Status Fetch(KernelSource* source, BuildProgress& progress);

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

absl::Status FetchedKernel::Fetch(KernelSource* source, BuildProgress& progress) {
  const auto checkpoint = [&](double f) {
    return progress.Report(BuildStep::kChoose, "kernel", f);
  };
  if (sample_.stream.gram() != nullptr) {
    PHIMAP_RETURN_IF_ERROR(FetchFromGram(checkpoint));
  } else {
    PHIMAP_CHECK(source != nullptr);
    PHIMAP_RETURN_IF_ERROR(FetchFromService(*source, progress, checkpoint));
  }
  landmarks_.gram = std::as_const(values_.gram).view();
  landmarks_.unit = values_.unit;
  return absl::OkStatus();
}

absl::Status FetchedKernel::FetchFromGram(Checkpoint checkpoint) {
  const GramSample& gram = *sample_.stream.gram();
  landmark_rows_ = gram.rows_of(RemotePart::kLandmarks);
  RemoteFeatures& block = landmarks_.block;
  block.kind = RemoteFeatures::StoredKind::kRowNumbers;
  for (const int64_t row : landmark_rows_) block.examples.push_back(absl::StrCat(row));
  GramExamples examples(gram);
  PHIMAP_ASSIGN_OR_RETURN(values_, FetchRemoteValues(spec_, examples, checkpoint));
  return absl::OkStatus();
}

absl::Status FetchedKernel::FetchFromService(KernelSource& source, BuildProgress& progress,
                                             Checkpoint checkpoint) {
  PHIMAP_ASSIGN_OR_RETURN(
      const LandmarkChoice choice,
      spec_.mapping.policy->choose({.landmarks = spec_.mapping.landmarks,
                                    .seed = spec_.seed,
                                    .kernel = spec_.kernel,
                                    .input = sample_.input,
                                    .reservoir = sample_.stream.reservoir(),
                                    .pool = sample_.split.pool,
                                    .shifts = sample_.shifts(),
                                    .given = sample_.stream.given(),
                                    .threads = [&] { return progress.threads(); }},
                                   NeverStop));
  landmarks_.block = {.kernel = spec_.remote->kernel,
                      .endpoint = spec_.remote->endpoint,
                      .kind = StoredKindOf(sample_.stream.kind()),
                      .examples = {}};
  ExampleBlock landmarks = ExamplesOf(choice.rows);
  for (int64_t i = 0; i < landmarks.rows(); ++i) {
    landmarks_.block.examples.push_back(landmarks.Bytes(i));
  }
  ServiceExamples examples(std::move(landmarks), ExamplesOf(sample_.held_out), source);
  PHIMAP_ASSIGN_OR_RETURN(values_, FetchRemoteValues(spec_, examples, checkpoint));
  return absl::OkStatus();
}

ExampleBlock FetchedKernel::ExamplesOf(const Matrix<double>& rows) const {
  const StreamSample& stream = sample_.stream;
  ExampleBlock block(stream.kind(), of_strings() ? 0 : stream.columns());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    if (of_strings()) {
      block.AddString((*stream.strings())[static_cast<size_t>(rows(i, 0))]);
    } else {
      block.AddRow(rows.row(i));
    }
  }
  return block;
}

LandmarkTask FetchedKernel::TaskFor(FloatType serving_type) const {
  return {.kernel = spec_.kernel,
          .input = of_strings() ? InputStage{} : CopyOf(sample_.input),
          .landmarks = {},
          .serving_type = serving_type,
          .remote = &landmarks_};
}

std::vector<int64_t> FetchedKernel::RowsOfLandmarks(const BuiltMapping& mapping) const {
  std::vector<int64_t> rows;
  if (landmark_rows_.empty()) return rows;
  for (const int64_t i : mapping.used) rows.push_back(landmark_rows_[i]);
  return rows;
}

absl::StatusOr<Spectrum> FetchedKernel::SpectrumOf(const BuiltMapping& mapping,
                                                   const TileControl& control) const {
  const int64_t m = values_.spectrum_gram.rows();
  if (m == 0) return absl::FailedPreconditionError("too few held-out rows");
  const Matrix<double> used = ColumnsOf(values_.held_out, mapping.used);
  return MeasureGramSpectrum(values_.spectrum_gram.Clone(), Transposed(used.view().Rows(0, m)),
                             mapping.factor.view(), control);
}

absl::StatusOr<Matrix<double>> FetchedKernel::HeldOutCoordinates(const BuiltMapping& mapping,
                                                                 FloatType) const {
  const int64_t count = std::min(values_.held_out.rows(), kMaxFidelityRows);
  if (mapping.factor.rows() == 0) {
    const Matrix<double> rows = HeldOutWithSelfValues(mapping);
    return FeaturesOf(mapping.reference, rows.view().Rows(0, count), NeverStop);
  }
  std::vector<int64_t> landmarks = mapping.used;
  landmarks.insert(landmarks.end(), mapping.tail.landmarks.begin(), mapping.tail.landmarks.end());
  const Matrix<double> values = ColumnsOf(values_.held_out, landmarks);
  return CoordinatesOf(mapping, Transposed(values.view().Rows(0, count)));
}

std::optional<SelfCheck> FetchedKernel::ReferenceVectors(const BuiltMapping& mapping) const {
  const Matrix<double> seen = ColumnsOf(values_.gram, mapping.used);
  const int64_t golden =
      std::min(seen.rows(), SelfCheckRows(seen.cols(), mapping.served.output_columns()));
  return MakeSelfCheck(mapping.served, Converted<float, double>(seen.view().Rows(0, golden)), {});
}

// Returns the held-out rows as the plan takes them, with K(x, x) as the last number of each row.
Matrix<double> FetchedKernel::HeldOutWithSelfValues(const BuiltMapping& mapping) const {
  const Matrix<double> rows = ColumnsOf(values_.held_out, mapping.used);
  Matrix<double> longer = Matrix<double>::Uninit(rows.rows(), rows.cols() + 1);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(rows.row(i), rows.cols(), longer.row(i));
    longer(i, rows.cols()) = values_.known.diagonal[static_cast<size_t>(i)];
  }
  return longer;
}

EngineRows FetchedKernel::RowsForDrift(const BuiltMapping& mapping, int64_t) const {
  EngineRows rows;
  rows.owned = HeldOutWithSelfValues(mapping);
  rows.held_out = std::as_const(rows.owned).view();
  return rows;
}

absl::Status FetchedKernel::Measure(MeasurementTask task, BuiltMapping& mapping,
                                    const TileControl& control, Certificate& certificate) const {
  const Matrix<double> rows = HeldOutWithSelfValues(mapping);
  task.rows = rows.view();
  if (spec_.mapping.kind->approximates_kernel) task.known = &values_.known;
  KernelCentre centre;
  if (spec_.mapping.centres_kernel()) {
    centre.mean = mapping.gram_mean;
    for (int64_t i = 0; i < values_.held_out.rows(); ++i) {
      const double* row = values_.held_out.row(i);
      const auto landmarks = values_.held_out.cols();
      centre.means.push_back(std::accumulate(row, row + landmarks, 0.0) /
                             static_cast<double>(landmarks));
    }
    task.centre = &centre;
  }
  return MeasureHeldOut(task, control, certificate);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelAccess>> FetchRemoteKernel(const BuildSpec& spec,
                                                                const BuildSample& sample,
                                                                KernelSource* source,
                                                                BuildProgress& progress) {
  auto kernel = std::make_unique<FetchedKernel>(spec, sample);
  PHIMAP_RETURN_IF_ERROR(kernel->Fetch(source, progress));
  return kernel;
}

}  // namespace phimap
