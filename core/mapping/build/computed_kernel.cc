
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/certificate/definiteness.h"
#include "core/certificate/fidelity.h"
#include "core/certificate/held_out_features.h"
#include "core/certificate/pair_error.h"
#include "core/certificate/self_check.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/string_kernel.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/landmark_policy.h"
#include "core/linalg/blas.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/kernel_access.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/mapping/projection/random_projection.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/sample/gamma.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/plan.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

bool IsFinite(const Matrix<double>& m) {
  return std::all_of(m.data(), m.data() + m.size(), [](double x) { return std::isfinite(x); });
}

// Returns, for each of the n rows x_i of `x`, the mean of K(x_i, z_j) over the m rows z_j of `z`.
// Both matrices have p columns. The result does not depend on the number of threads, not even in
// the last bit.
//
// Cost: an n×m kernel block; 256·m·8 bytes per thread. Errors: those of `control`. Calls BLAS.
// REQUIRES: z has rows.
absl::StatusOr<std::vector<double>> MeanValues(const KernelProgram& program,
                                               ConstMatrixView<double> x, ConstMatrixView<double> z,
                                               const TileControl& control) {
  constexpr int64_t kTileRows = 256;
  const int64_t m = z.rows();
  PHIMAP_CHECK(m > 0);
  const std::vector<double> norms = SquaredNorms(x);
  const std::vector<double> z_norms = SquaredNorms(z);
  std::vector<double> means(static_cast<size_t>(x.rows()));
  PHIMAP_RETURN_IF_ERROR(
      ForEachRange(x.rows(), kTileRows, control, [&](int64_t begin, int64_t count) {
        const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + begin + count);
        Matrix<double> tile = Matrix<double>::Uninit(count, m);
        KernelBlock(program, x.Rows(begin, count), tile_norms, z, z_norms, tile.view());
        for (int64_t i = 0; i < count; ++i) {
          means[begin + i] =
              std::accumulate(tile.row(i), tile.row(i) + m, 0.0) / static_cast<double>(m);
        }
      }));
  return means;
}

// A kernel that is computed here, with the landmarks that were chosen for it.
class ComputedKernel final : public KernelAccess {
 public:
  ComputedKernel(const BuildSpec& spec, const BuildSample& sample)
      : spec_(spec), sample_(sample), input_(CopyOf(sample.input)) {}

  // The steps of PrepareComputedKernel: resolves gamma, chooses the landmarks, and tests on them
  // whether the kernel is positive semidefinite.
  absl::Status Resolve();
  absl::Status Choose(BuildProgress& progress);
  absl::Status Probe(BuildProgress& progress);

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
  // Returns an error if the stream has negative numbers in columns where the kernel accepts none.
  absl::Status CheckSigns() const;
  // Returns the rows that the policy chooses. If a rule finds the number of landmarks, returns as
  // many as suffice.
  absl::StatusOr<LandmarkChoice> ChooseRows(BuildProgress& progress);
  // Uses the spec's rule to find how many of the chosen rows suffice, and drops the others.
  absl::Status FindCount(LandmarkChoice& choice, const TileControl& control);
  // Returns an error if the landmarks have too many n-grams, because a plan stores all of them.
  absl::Status CheckStrings(ConstMatrixView<double> places) const;
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

absl::Status ComputedKernel::CheckSigns() const {
  if (sample_.of_strings()) return absl::OkStatus();
  const ColumnMoments& moments = sample_.stream.moments();
  for (int64_t column = 0; column < moments.columns(); ++column) {
    if (moments.count() == 0 || moments.min(column) >= 0) continue;
    const KernelNode* const leaf = spec_.kernel.NeedsNonnegative(column);
    if (leaf == nullptr) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kKernelNotApplicable, "examples",
        absl::StrCat(leaf->leaf->name, " accepts only numbers >= 0, but the smallest in column ",
                     column, " is ", moments.min(column),
                     "; scale the column to numbers >= 0, or list the columns that the kernel is "
                     "to use, for example columns=0:8"),
        {{"column", absl::StrCat(column)}, {"actual", absl::StrCat(moments.min(column))}});
  }
  return absl::OkStatus();
}

absl::Status ComputedKernel::Resolve() {
  PHIMAP_RETURN_IF_ERROR(CheckSigns());
  PHIMAP_ASSIGN_OR_RETURN(kernel_, ResolvedKernel(spec_, sample_));
  if (sample_.of_strings()) kernel_ = kernel_.Over(sample_.stream.strings());
  return absl::OkStatus();
}

absl::StatusOr<LandmarkChoice> ComputedKernel::ChooseRows(BuildProgress& progress) {
  const LandmarkPolicy& policy = *spec_.mapping.policy;
  const bool found = spec_.mapping.count_rule != nullptr;
  const double chosen = !found ? 1 : policy.work == nullptr ? 0 : 0.5;
  int64_t most = spec_.mapping.landmarks;
  if (found) most = std::min(most, static_cast<int64_t>(sample_.split.pool.size()));
  PHIMAP_ASSIGN_OR_RETURN(
      LandmarkChoice choice,
      policy.choose(
          {.landmarks = most,
           .seed = spec_.seed,
           .kernel = kernel_,
           .input = input_,
           .reservoir = sample_.stream.reservoir(),
           .pool = sample_.split.pool,
           .shifts = sample_.shifts(),
           .given = sample_.stream.given(),
           .threads = [&] { return progress.threads(); }},
          [&](double f) { return progress.Report(BuildStep::kChoose, "choose", chosen * f); }));
  if (found) {
    const auto threads = [&] { return progress.threads(); };
    const auto report = [&](double f) {
      return progress.Report(BuildStep::kChoose, "choose", chosen + (1 - chosen) * f);
    };
    PHIMAP_RETURN_IF_ERROR(FindCount(choice, {threads, report}));
  }
  return choice;
}

absl::Status ComputedKernel::Choose(BuildProgress& progress) {
  // From here on, rows have the projected columns. Gamma was computed before, from the stream's own
  // columns.
  if (spec_.mapping.input_dimensions != 0) {
    ProjectInput(spec_.mapping.input_dimensions, spec_.seed, input_);
  }
  PHIMAP_ASSIGN_OR_RETURN(const LandmarkChoice choice, ChooseRows(progress));
  pool_trace_residual_ = choice.pool_trace_residual;
  const ConstMatrixView<double> rows = std::as_const(choice.rows).view();
  PHIMAP_RETURN_IF_ERROR(CheckStrings(rows));
  anchors_ = Matrix<double>::Uninit(kMaxSelfCheckRows, rows.cols());
  for (int64_t i = 0; i < anchors_.rows(); ++i) {
    std::copy_n(rows.row(i % rows.rows()), rows.cols(), anchors_.row(i));
  }
  if (sample_.shifts() && kernel_.IsTranslationInvariant()) CentreOn(rows, input_);
  unprojected_ = {.columns = input_.columns,
                  .shift = input_.shift,
                  .scale = sample_.input.scale,
                  .projection = {}};
  landmarks_ = AfterInputStage(input_, rows);
  if (!input_.projection.empty() && spec_.mapping.centres_kernel()) {
    unprojected_landmarks_ = AfterInputStage(unprojected_, rows);
  }
  return absl::OkStatus();
}

absl::Status ComputedKernel::FindCount(LandmarkChoice& choice, const TileControl& control) {
  InputStage input = CopyOf(input_);
  if (sample_.shifts() && kernel_.IsTranslationInvariant()) CentreOn(choice.rows.view(), input);
  const Matrix<double> candidates = AfterInputStage(input, choice.rows.view());
  const Matrix<double> deciding = AfterInputStage(input, sample_.deciding.view());
  FloatType type = spec_.mapping.serving_type.value_or(FloatType::kFloat32);
  if (!spec_.mapping.serving_type.has_value() && !(IsFinite(RoundedTo(type, candidates.view())) &&
                                                   IsFinite(RoundedTo(type, deciding.view())))) {
    type = FloatType::kFloat64;  // the version will then be served in float64
  }
  const KernelProgram program = KernelProgram::Compile(kernel_);
  const Matrix<double> served = RoundedTo(type, candidates.view());
  const Matrix<double> decided = RoundedTo(type, deciding.view());
  PHIMAP_ASSIGN_OR_RETURN(
      found_count_,
      spec_.mapping.count_rule->find({.kernel = program,
                                      .candidates = served.view(),
                                      .deciding = decided.view(),
                                      .goal = spec_.mapping.goal,
                                      .most = spec_.mapping.landmarks,
                                      .unit = type == FloatType::kFloat32 ? 0x1p-24 : 0x1p-53},
                                     control));
  if (found_count_->landmarks == choice.rows.rows()) return absl::OkStatus();
  choice.rows = Converted<double, double>(choice.rows.view().Rows(0, found_count_->landmarks));
  choice.pool_trace_residual.reset();  // it is that of all chosen rows, not of the rows kept
  return absl::OkStatus();
}

absl::Status ComputedKernel::CheckStrings(ConstMatrixView<double> places) const {
  if (!sample_.of_strings()) return absl::OkStatus();
  const std::vector<std::string>& strings = *sample_.stream.strings();
  int64_t bytes = 0;
  for (int64_t i = 0; i < places.rows(); ++i) {
    bytes += static_cast<int64_t>(strings[static_cast<size_t>(places(i, 0))].size());
  }
  const int64_t indexed = IndexedBytes(KernelProgram::Compile(kernel_).strings(), bytes);
  if (indexed <= kMaxIndexedBytes) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kLandmarksTooLong, "landmarks",
      absl::StrCat("the ", CountOf(places.rows(), "landmark"),
                   places.rows() == 1 ? " has " : " have ", bytes,
                   " bytes; counted once for each unit and n of the kernel, these are ", indexed,
                   " bytes, expected at most ", kMaxIndexedBytes,
                   "; ask for fewer landmarks, or shorten the examples"),
      {{"limit", absl::StrCat(kMaxIndexedBytes)}, {"actual", absl::StrCat(indexed)}});
}

absl::Status ComputedKernel::Probe(BuildProgress& progress) {
  if (kernel_.IsProvenPositiveSemidefinite()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(
      const DefinitenessProbe probe,
      ProbeDefiniteness(KernelProgram::Compile(kernel_), landmarks_.view(), [&](double f) {
        return progress.Report(BuildStep::kChoose, "sample", f);
      }));
  PHIMAP_ASSIGN_OR_RETURN(verdict_, VerdictOn(kernel_.ToText(), spec_.mapping, probe));
  return absl::OkStatus();
}

LandmarkTask ComputedKernel::TaskFor(FloatType serving_type) const {
  return {.kernel = kernel_,
          .input = CopyOf(input_),
          .landmarks = landmarks_.view(),
          .serving_type = serving_type};
}

std::vector<double> ComputedKernel::HeldOutDiagonal() const {
  const Matrix<double> x = AfterInputStage(input_, sample_.held_out.view());
  return KernelDiagonal(KernelProgram::Compile(kernel_), x.view(), SquaredNorms(x.view()));
}

absl::StatusOr<Spectrum> ComputedKernel::SpectrumOf(const BuiltMapping& mapping,
                                                    const TileControl& control) const {
  if (sample_.held_out.rows() < kMinHeldOutRows) {
    return absl::FailedPreconditionError("too few held-out rows");
  }
  Matrix<double> x = AfterInputStage(input_, sample_.FirstHeldOut(kMaxSpectrumRows).view());
  // Rows that equal a landmark must equal it as it is served.
  if (kernel_.JumpsAtEqualRows()) x = RoundedTo(mapping.served.serving_type(), x.view());
  return MeasureSpectrum(KernelProgram::Compile(kernel_), x.view(), mapping.pivots.view(),
                         mapping.factor.view(), control);
}

absl::StatusOr<Matrix<double>> ComputedKernel::HeldOutCoordinates(const BuiltMapping& mapping,
                                                                  FloatType type) const {
  const ConstMatrixView<double> rows =
      sample_.held_out.view().Rows(0, std::min(sample_.held_out.rows(), kMaxFidelityRows));
  if (mapping.factor.rows() == 0) {
    return FeaturesOf(mapping.reference, rows, NeverStop,
                      sample_.of_strings() ? sample_.stream.strings().get() : nullptr);
  }
  Matrix<double> x =
      sample_.of_strings() ? Converted<double, double>(rows) : AfterInputStage(input_, rows);
  // Landmarks and held-out rows must be rounded alike, as in Measure.
  if (kernel_.JumpsAtEqualRows()) x = RoundedTo(type, x.view());
  const KernelProgram program = KernelProgram::Compile(kernel_);
  const std::vector<double> norms = SquaredNorms(x.view());
  const int64_t r = mapping.rank();
  const int64_t q = mapping.tail.rank();
  Matrix<double> values = Matrix<double>::Uninit(r + q, x.rows());
  KernelBlock(program, mapping.pivots.view(), SquaredNorms(mapping.pivots.view()), x.view(), norms,
              values.view().Rows(0, r));
  if (q > 0) {
    KernelBlock(program, mapping.tail.pivots.view(), SquaredNorms(mapping.tail.pivots.view()),
                x.view(), norms, values.view().Rows(r, q));
  }
  return CoordinatesOf(mapping, std::move(values));
}

std::optional<SelfCheck> ComputedKernel::ReferenceVectors(const BuiltMapping& mapping) const {
  if (sample_.of_strings()) return std::nullopt;  // rows are generated only from numbers
  const StreamSample& stream = sample_.stream;
  const Matrix<float> rows = stream.MadeUpRows(
      SelfCheckRows(stream.columns(), mapping.served.output_columns()), spec_.seed);
  return MakeSelfCheck(
      mapping.served, rows,
      anchors_.empty() ? ConstMatrixView<double>() : anchors_.view().Rows(0, rows.rows()));
}

absl::StatusOr<KernelCentre> ComputedKernel::CentreOf(const BuiltMapping& mapping,
                                                      const Matrix<double>& reference_rows,
                                                      const TileControl& control) const {
  const KernelProgram program = KernelProgram::Compile(kernel_);
  KernelCentre centre;
  if (!unprojected_landmarks_.empty()) {
    // mapping.gram_mean cannot be used here, because it is the mean of another kernel: the kernel
    // of projected rows.
    const ConstMatrixView<double> landmarks = unprojected_landmarks_.view();
    const Matrix<double> x = AfterInputStage(unprojected_, sample_.held_out.view());
    PHIMAP_ASSIGN_OR_RETURN(
        const std::vector<double> means,
        MeanValues(program, landmarks, landmarks,
                   {control.threads_ref(), [&](double f) { return control(0.5 * f); }}));
    centre.mean =
        std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size());
    PHIMAP_ASSIGN_OR_RETURN(
        centre.means,
        MeanValues(program, x.view(), landmarks,
                   {control.threads_ref(), [&](double f) { return control(0.5 + 0.5 * f); }}));
    return centre;
  }
  centre.mean = mapping.gram_mean;
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> landmarks,
                          ServedLandmarks(TaskFor(mapping.served.serving_type())));
  const Matrix<double> x = reference_rows.empty() ? AfterInputStage(input_, sample_.held_out.view())
                                                  : reference_rows.Clone();
  PHIMAP_ASSIGN_OR_RETURN(centre.means, MeanValues(program, x.view(), landmarks.view(), control));
  return centre;
}

double ComputedKernel::PoolShare() const {
  const std::vector<int64_t>& pool = sample_.split.pool;
  if (sample_.of_strings() || pool.empty() || kernel_.IsTranslationInvariant()) return 1;
  const InputStage& input = input_.projection.empty() ? input_ : unprojected_;
  const KernelProgram program = KernelProgram::Compile(kernel_);
  constexpr size_t kBlockRows = 512;
  std::vector<double> diagonal;
  for (size_t begin = 0; begin < pool.size(); begin += kBlockRows) {
    const auto slots = absl::MakeConstSpan(pool).subspan(begin, kBlockRows);
    const Matrix<double> x =
        AfterInputStage(input, sample_.stream.reservoir().Gather(slots).view());
    const std::vector<double> of_block = KernelDiagonal(program, x.view(), SquaredNorms(x.view()));
    diagonal.insert(diagonal.end(), of_block.begin(), of_block.end());
  }
  return EffectiveCount(diagonal) / static_cast<double>(pool.size());
}

absl::Status ComputedKernel::Measure(MeasurementTask task, BuiltMapping& mapping,
                                     const TileControl& control, Certificate& certificate) const {
  task.rows = sample_.held_out.view();
  if (sample_.of_strings()) task.strings = sample_.stream.strings().get();
  // The kernel jumps where two rows are equal, so landmarks and held-out rows must be rounded
  // alike. Otherwise a landmark and an equal held-out row would become different.
  Matrix<double> reference_rows;
  if (kernel_.JumpsAtEqualRows() && spec_.mapping.has_landmarks()) {
    reference_rows = RoundedTo(mapping.served.serving_type(),
                               AfterInputStage(input_, sample_.held_out.view()).view());
    mapping.reference.input = {.columns = reference_rows.cols()};
    task.reference_rows = std::as_const(reference_rows).view();
  }
  task.pivots = std::as_const(mapping.pivots).view();
  if (spec_.mapping.kind->approximates_kernel) task.kernel = KernelProgram::Compile(kernel_);
  if (!input_.projection.empty()) task.kernel_input = &unprojected_;
  if (task.kernel.has_value()) task.pool_share = PoolShare();
  if (!spec_.mapping.centres_kernel() || task.rows.rows() < kMinHeldOutRows) {
    return MeasureHeldOut(task, control, certificate);
  }
  PHIMAP_ASSIGN_OR_RETURN(const KernelCentre centre,
                          CentreOf(mapping, reference_rows, {control.threads_ref(), [&](double f) {
                                                               return control(0.3 * f);
                                                             }}));
  task.centre = &centre;
  return MeasureHeldOut(
      task, {control.threads_ref(), [&](double f) { return control(0.3 + 0.7 * f); }}, certificate);
}

std::vector<int64_t> ComputedKernel::SlotsBesideLandmarks(int64_t at_most) const {
  constexpr size_t kBlockRows = 64;
  const auto bytes_of = [](const Matrix<double>& rows, int64_t i) {
    return absl::string_view(reinterpret_cast<const char*>(rows.row(i)),
                             static_cast<size_t>(rows.cols()) * sizeof(double));
  };
  absl::flat_hash_set<absl::string_view> landmarks;
  for (int64_t i = 0; i < landmarks_.rows(); ++i) landmarks.insert(bytes_of(landmarks_, i));
  std::vector<int64_t> beside;
  auto left = absl::MakeConstSpan(sample_.split.pool);
  while (!left.empty() && std::ssize(beside) < at_most) {
    const auto slots = left.last(std::min(kBlockRows, left.size()));
    left.remove_suffix(slots.size());
    const Matrix<double> rows =
        AfterInputStage(input_, sample_.stream.reservoir().Gather(slots).view());
    for (int64_t i = 0; i < rows.rows() && std::ssize(beside) < at_most; ++i) {
      if (!landmarks.contains(bytes_of(rows, i))) beside.push_back(slots[static_cast<size_t>(i)]);
    }
  }
  return beside;
}

EngineRows ComputedKernel::RowsForDrift(const BuiltMapping&, int64_t pool_rows) const {
  EngineRows rows;
  if (pool_rows > 0) {
    rows.pool = sample_.stream.reservoir().Gather(SlotsBesideLandmarks(pool_rows));
  }
  rows.held_out = sample_.held_out.view();
  if (sample_.of_strings()) rows.strings = sample_.stream.strings().get();
  rows.has_columns = !sample_.of_strings();
  return rows;
}

}  // namespace

absl::StatusOr<KernelExpression> ResolvedKernel(const BuildSpec& spec, const BuildSample& sample) {
  double scale = 0;
  double median = 0;
  if (spec.kernel.NeedsScale()) {
    PHIMAP_ASSIGN_OR_RETURN(scale,
                            ScaleGamma(sample.stream.moments(), spec.standardize, sample.shifts()));
  }
  if (spec.kernel.NeedsMedian()) {
    const Matrix<double> pool = sample.stream.reservoir().Gather(sample.split.pool);
    PHIMAP_ASSIGN_OR_RETURN(
        median, MedianGamma(AfterInputStage(sample.input, pool.view()).view(), spec.seed));
  }
  return spec.kernel.Resolved(scale, median);
}

absl::StatusOr<std::unique_ptr<KernelAccess>> PrepareComputedKernel(const BuildSpec& spec,
                                                                    const BuildSample& sample,
                                                                    BuildProgress& progress) {
  auto kernel = std::make_unique<ComputedKernel>(spec, sample);
  PHIMAP_RETURN_IF_ERROR(kernel->Resolve());
  if (spec.mapping.has_landmarks()) {
    PHIMAP_RETURN_IF_ERROR(kernel->Choose(progress));
    PHIMAP_RETURN_IF_ERROR(kernel->Probe(progress));
  }
  return kernel;
}

}  // namespace phimap
