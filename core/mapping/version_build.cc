#include "core/mapping/version_build.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/certificate/definiteness.h"
#include "core/certificate/measurement.h"
#include "core/certificate/self_check.h"
#include "core/certificate/spectrum.h"
#include "core/kernel/kernel_block.h"
#include "core/landmark/moments.h"
#include "core/landmark/reservoir.h"
#include "core/landmark/rpcholesky.h"
#include "core/landmark/split.h"
#include "core/mapping/build_cost.h"
#include "core/mapping/fourier_mapping.h"
#include "core/mapping/gamma.h"
#include "core/mapping/input_projection.h"
#include "core/mapping/kernel_pca.h"
#include "core/mapping/landmark_choice.h"
#include "core/mapping/landmark_mapping.h"
#include "core/mapping/polynomial_mapping.h"
#include "core/mapping/random_projection.h"
#include "core/mapping/theorem.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// A residual of kernel PCA up to it needs no word; of a randomized Gram matrix, which is in
// float32, the second.
constexpr double kLargestResidual = 1e-6;
constexpr double kLargestSingleResidual = 1e-4;
// Of the whole build's time, what goes into drawing the sample, and into the artifact's bytes.
constexpr double kSampleShare = 0.01;
constexpr double kEncodeShare = 0.02;

// A part of what is reported, 0..1 of the whole build.
struct Part {
  double begin = 0;
  double end = 0;
};

}  // namespace

struct StreamSample::State {
  State(const BuildSpec& spec, int64_t columns)
      : pool_rows(spec.PoolRows(columns)),
        copies_pool(spec.kernel.NeedsMedian() ||
                    spec.mapping.policy == LandmarkPolicy::kRandomlyPivotedCholesky),
        given_rows(spec.mapping.given_rows()),
        moments(columns),
        reservoir(ReservoirCapacity(pool_rows), columns, spec.seed) {}

  // Takes the rows of a block that are landmarks by their place; the others are left.
  ConstMatrixView<double> TakeGiven(ConstMatrixView<double> block) {
    const int64_t missing = given_rows * block.cols() - static_cast<int64_t>(given.size());
    const int64_t count = std::min(block.rows(), missing / block.cols());
    given.insert(given.end(), block.row(0), block.row(0) + count * block.cols());
    return block.Rows(count, block.rows() - count);
  }

  int64_t pool_rows;
  bool copies_pool;
  int64_t given_rows;
  // The rows that came so far of those that are landmarks by their place.
  std::vector<double> given;
  ColumnMoments moments;
  Reservoir reservoir;
  // Rows on their way, widened to float64.
  Matrix<double> block;
};

StreamSample::StreamSample(const BuildSpec& spec, int64_t columns)
    : state_(std::make_unique<State>(spec, columns)) {
  PHIMAP_CHECK(columns >= 1 && columns <= kMaxColumns);
}
StreamSample::~StreamSample() = default;
StreamSample::StreamSample(StreamSample&&) noexcept = default;
StreamSample& StreamSample::operator=(StreamSample&&) noexcept = default;

int64_t StreamSample::rows() const {
  return state_->reservoir.rows_seen() + static_cast<int64_t>(state_->given.size()) / columns();
}
int64_t StreamSample::columns() const { return state_->reservoir.columns(); }
int64_t StreamSample::memory_bound_bytes() const {
  const int64_t copies = state_->copies_pool ? 3 : 1;
  // A vector doubles when it grows.
  const int64_t rows = copies * state_->reservoir.capacity() + 3 * state_->given_rows;
  return rows * (columns() + 1) * static_cast<int64_t>(sizeof(double));
}

absl::Status StreamSample::Add(const RowsView& rows) {
  if (rows.columns != columns()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "WRONG_COLUMNS", "examples.dense.columns",
        absl::StrCat("expected ", columns(), " as in the first block, got ", rows.columns),
        {{"expected", absl::StrCat(columns())}, {"actual", absl::StrCat(rows.columns)}});
  }
  PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(CheckFinite(rows), "examples.dense."));
  // About 64 KiB at a time, so that the widened rows stay in the cache.
  const int64_t at_once = std::clamp<int64_t>(8192 / columns(), 1, 256);
  if (state_->block.rows() != at_once) {
    state_->block = Matrix<double>::Uninit(at_once, columns());
  }
  for (int64_t first = 0; first < rows.rows; first += at_once) {
    const int64_t count = std::min(at_once, rows.rows - first);
    for (int64_t i = 0; i < count; ++i) rows.CopyRow(first + i, state_->block.row(i));
    const ConstMatrixView<double> block =
        state_->TakeGiven(std::as_const(state_->block).view().Rows(0, count));
    state_->moments.Add(block);
    state_->reservoir.Offer(block);
  }
  return absl::OkStatus();
}

absl::Status CheckStreamRows(const BuildSpec& spec, int64_t rows) {
  const int64_t landmarks = spec.mapping.landmarks;
  const bool given = spec.mapping.given_rows() > 0;
  // Nothing but landmarks leaves no row to take means, deviations or gamma of.
  const int64_t least = std::max<int64_t>(1, landmarks + (given ? 1 : 0));
  if (rows == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "EMPTY_STREAM", "examples",
                     absl::StrCat("the stream has 0 rows; expected at least ", least,
                                  spec.mapping.has_landmarks() ? " (landmarks)" : ""));
  }
  if (rows < least) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "TOO_FEW_ROWS", "spec.landmarks",
                     absl::StrCat("the stream has ", rows, " rows, fewer than the ", landmarks,
                                  given ? " landmarks and one row more" : " landmarks",
                                  "; stream more rows or ask for fewer landmarks"),
                     {{"expected", absl::StrCat(least)}, {"actual", absl::StrCat(rows)}});
  }
  return absl::OkStatus();
}

// The steps of BuildVersion, in order; what one leaves behind the next finds in the members.
class VersionBuilder {
 public:
  VersionBuilder(const BuildSpec& spec, StreamSample sample, BuildMonitor& monitor)
      : spec_(spec),
        sample_(std::move(sample)),
        monitor_(monitor),
        serving_type_(spec.mapping.serving_type.value_or(FloatType::kFloat32)) {}

  absl::StatusOr<BuiltVersion> Run() {
    PHIMAP_RETURN_IF_ERROR(Report("sample", sample_part_, 0));
    PHIMAP_RETURN_IF_ERROR(CheckRows());
    Apportion();
    PHIMAP_RETURN_IF_ERROR(Split());
    PHIMAP_RETURN_IF_ERROR(ResolveKernel());
    if (spec_.mapping.has_landmarks()) {
      ProjectInputs();
      PHIMAP_RETURN_IF_ERROR(Choose());
      PHIMAP_RETURN_IF_ERROR(ProbeKernel());
    }
    PHIMAP_RETURN_IF_ERROR(BuildInServingType());
    return Encode();
  }

 private:
  StreamSample::State& state() { return *sample_.state_; }
  int64_t stream_rows() const { return sample_.rows(); }
  bool has_factor() const {
    return spec_.mapping.kind == MappingKind::kF2 || spec_.mapping.kind == MappingKind::kF3;
  }

  absl::Status CheckRows() {
    PHIMAP_RETURN_IF_ERROR(CheckStreamRows(spec_, stream_rows()));
    PHIMAP_RETURN_IF_ERROR(spec_.CheckColumns(sample_.columns()));
    return state().moments.CheckFinite();
  }

  absl::Status Split() {
    // Landmarks that are given are none of the sample's rows.
    split_ =
        SplitSample(state().reservoir.rows_seen(), state().reservoir.size(),
                    spec_.mapping.landmarks - state().given_rows, state().pool_rows, spec_.seed);
    held_out_ = state().reservoir.Gather(split_.held_out);
    input_.columns = sample_.columns();
    // Angles keep more float32 digits about the mean, and a kernel of x − y does not see the shift.
    const bool centre = spec_.standardize || spec_.mapping.kind == MappingKind::kFourier;
    for (int64_t j = 0; j < input_.columns && centre; ++j) {
      input_.shift.push_back(state().moments.mean(j));
      if (spec_.standardize) input_.scale.push_back(state().moments.StandardScale(j));
    }
    return absl::OkStatus();
  }

  absl::Status ResolveKernel() {
    double scale = 0;
    double median = 0;
    if (spec_.kernel.NeedsScale()) {
      PHIMAP_ASSIGN_OR_RETURN(scale, ScaleGamma(state().moments, spec_.standardize));
    }
    if (spec_.kernel.NeedsMedian()) {
      const Matrix<double> pool = state().reservoir.Gather(split_.pool);
      PHIMAP_ASSIGN_OR_RETURN(median,
                              MedianGamma(AfterInputStage(input_, pool.view()).view(), spec_.seed));
    }
    kernel_ = spec_.kernel.Resolved(scale, median);
    return absl::OkStatus();
  }

  // From here on rows have other columns: gamma was taken of those that came.
  void ProjectInputs() {
    if (spec_.mapping.input_dimensions == 0) return;
    unprojected_scale_ = input_.scale;
    ProjectInput(spec_.mapping.input_dimensions, spec_.seed, input_);
  }

  // What the kernel sees without the projection.
  InputStage UnprojectedInput() const {
    return {.columns = input_.columns,
            .shift = input_.shift,
            .scale = unprojected_scale_,
            .projection = {}};
  }

  absl::Status Choose() {
    PHIMAP_ASSIGN_OR_RETURN(
        LandmarkChoice choice,
        ChooseLandmarks({.mapping = spec_.mapping,
                         .seed = spec_.seed,
                         .kernel = kernel_,
                         .input = input_,
                         .reservoir = state().reservoir,
                         .pool = split_.pool,
                         .given = GivenLandmarks(),
                         .threads = [&] { return monitor_.threads(); }},
                        [&](double f) { return Report("choose", choose_part_, f); }));
    pool_trace_residual_ = choice.pool_trace_residual;
    const ConstMatrixView<double> rows = std::as_const(choice.rows).view();
    anchors_ = Matrix<double>::Uninit(kMaxSelfCheckRows, rows.cols());
    for (int64_t i = 0; i < anchors_.rows(); ++i) {
      std::copy_n(rows.row(i % rows.rows()), rows.cols(), anchors_.row(i));
    }
    if (kernel_.IsTranslationInvariant()) CentreOn(rows, input_);
    landmarks_ = AfterInputStage(input_, rows);
    return absl::OkStatus();
  }

  // The verdict on a kernel that is not positive semidefinite by construction.
  absl::Status ProbeKernel() {
    if (kernel_.IsProvenPositiveSemidefinite()) return absl::OkStatus();
    PHIMAP_ASSIGN_OR_RETURN(
        const DefinitenessProbe probe,
        ProbeDefiniteness(KernelProgram::Compile(kernel_), landmarks_.view(),
                          [&](double f) { return Report("sample", choose_part_, f); }));
    const bool needs_definite = has_factor() || spec_.mapping.kind == MappingKind::kKernelPca;
    if (probe.indefinite() && needs_definite) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition, "NOT_POSITIVE_SEMIDEFINITE", "kernel",
          absl::StrCat(kernel_.ToText(), " is not positive semidefinite: ", probe.ToText(),
                       ". F2, F3 and kernel PCA need a positive semidefinite kernel, F1 takes any"),
          {{"eigenvalue", absl::StrCat(probe.smallest)}});
    }
    const bool known = probe.indefinite() || !kernel_.CheckPositiveSemidefinite().ok();
    kernel_warning_ = absl::StrCat(
        known ? "the kernel is not positive semidefinite: "
              : "the kernel is not known to be positive semidefinite: ",
        probe.ToText(),
        needs_definite ? "" : ". It is a similarity, and no margin in a feature space is promised");
    return absl::OkStatus();
  }

  ConstMatrixView<double> GivenLandmarks() {
    const int64_t count = state().given_rows;
    return {state().given.data(), count, sample_.columns()};
  }

  InputStage InputCopy() const {
    return {.columns = input_.columns,
            .shift = input_.shift,
            .scale = input_.scale,
            .projection = input_.projection.Clone()};
  }

  absl::Status BuildMapping() {
    mapping_ = LandmarkMapping();
    return spec_.mapping.has_landmarks() ? BuildOnLandmarks() : BuildFree();
  }

  absl::Status BuildOnLandmarks() {
    const LandmarkTask task{.kernel = kernel_,
                            .input = InputCopy(),
                            .landmarks = landmarks_.view(),
                            .serving_type = serving_type_};
    const double gram = GramShare(task);
    const auto threads = [&] { return monitor_.threads(); };
    const auto checkpoint = [&](double f) {
      return Report(f < gram ? "gram" : "factor", mapping_part_, f);
    };
    if (spec_.mapping.kind == MappingKind::kF1) {
      PHIMAP_ASSIGN_OR_RETURN(mapping_, BuildF1(task));
    } else if (spec_.mapping.kind == MappingKind::kKernelPca) {
      const KernelPcaTask pca{.components = spec_.mapping.dimensions,
                              .centred = spec_.mapping.centred,
                              .seed = spec_.seed,
                              .gram = {spec_.mapping.sparsify, spec_.mapping.quantise},
                              .rounding = spec_.mapping.rounding};
      PHIMAP_ASSIGN_OR_RETURN(kernel_pca_, BuildMeasuredKernelPca(task, pca, checkpoint));
      static_cast<PlanPair&>(mapping_) = std::move(kernel_pca_);
    } else if (spec_.mapping.kind == MappingKind::kF2) {
      PHIMAP_ASSIGN_OR_RETURN(mapping_, BuildF2(task, {threads, checkpoint}));
    } else {
      PHIMAP_ASSIGN_OR_RETURN(mapping_, BuildF3(task, projection(), {threads, checkpoint}));
    }
    return absl::OkStatus();
  }

  ProjectionTask projection() const {
    return {.kind = spec_.mapping.projection,
            .dimensions = spec_.mapping.dimensions,
            .seed = spec_.seed,
            .blocks = std::max<int64_t>(1, spec_.mapping.classes)};
  }

  // A mapping that knows no landmarks: its numbers are drawn.
  absl::Status BuildFree() {
    const InputStage input = InputCopy();
    const ServedAs as{.input = input, .serving_type = serving_type_};
    const auto checkpoint = [&](double f) { return Report("draw", mapping_part_, f); };
    PlanPair& plans = mapping_;
    if (spec_.mapping.kind == MappingKind::kFourier) {
      const FourierTask task{.kernel = *FourierKernelOf(kernel_),
                             .form = spec_.mapping.form,
                             .orthogonal = spec_.mapping.orthogonal,
                             .dimensions = spec_.mapping.dimensions,
                             .seed = spec_.seed};
      PHIMAP_ASSIGN_OR_RETURN(plans, BuildFourier(as, task, checkpoint));
      return absl::OkStatus();
    }
    if (spec_.mapping.kind == MappingKind::kPolynomial) {
      PHIMAP_ASSIGN_OR_RETURN(plans, BuildPolynomial(as, *PolynomialKernelOf(kernel_), checkpoint));
      return absl::OkStatus();
    }
    double factor = 0;
    PHIMAP_CHECK(kernel_.IsScaledLinear(&factor));
    PHIMAP_ASSIGN_OR_RETURN(plans, BuildRandomProjection(as, factor, projection(), checkpoint));
    return absl::OkStatus();
  }

  absl::Status Certify() {
    certificate_ = Certificate();
    certificate_.stream_rows = stream_rows();
    certificate_.pool_rows = split_.pool.size();
    certificate_.held_out_rows = split_.held_out.size();
    certificate_.landmarks = spec_.mapping.landmarks;
    if (spec_.mapping.has_landmarks()) {
      certificate_.policy = std::string(LandmarkPolicyName(spec_.mapping.policy));
    }
    certificate_.theorem = TheoremOf(spec_.mapping, Facts());
    certificate_.pool_trace_residual = pool_trace_residual_;
    if (has_factor()) {
      CertifyFactor();
      PHIMAP_RETURN_IF_ERROR(CertifySpectrum());
    }
    if (spec_.mapping.kind == MappingKind::kKernelPca) CertifyComponents();
    if (!kernel_warning_.empty()) certificate_.warnings.push_back(kernel_warning_);
    MeasurementTask task{.served = &mapping_.served,
                         .reference = &mapping_.reference,
                         .rows = held_out_.view(),
                         .kernel = std::nullopt,
                         .pivots = std::as_const(mapping_.pivots).view(),
                         .factor = std::as_const(mapping_.factor).view(),
                         .features_are_projection = spec_.mapping.kind == MappingKind::kF2};
    if (spec_.mapping.approximates_kernel()) task.kernel = KernelProgram::Compile(kernel_);
    const InputStage unprojected = UnprojectedInput();
    if (!input_.projection.empty()) task.kernel_input = &unprojected;
    certificate_.self_check = MakeGoldenVectors();
    const auto threads = [&] { return monitor_.threads(); };
    return MeasureHeldOut(
        task, {threads, [&](double f) { return Report("certificate", measurement_part_, f); }},
        certificate_);
  }

  // What the theorem's numbers are made of beside the mapping's own.
  TheoremFacts Facts() const {
    TheoremFacts facts{.columns = input_.columns};
    if (spec_.mapping.kind == MappingKind::kKernelPca) {
      facts.components = static_cast<int64_t>(kernel_pca_.eigenvalues.size());
      for (const double value : kernel_pca_.eigenvalues) facts.share += value / kernel_pca_.trace;
      facts.residual = kernel_pca_.residual;
      facts.used_landmarks = kernel_pca_.landmarks;
      facts.gram = kernel_pca_.gram;
      facts.rounding = kernel_pca_.rounding;
    }
    if (spec_.mapping.kind != MappingKind::kFourier) return facts;
    // A Laplacian's frequencies have no mean length, and so no bound for all rows at once.
    if (FourierKernelOf(kernel_)->laplacian) return facts;
    facts.gamma = FourierKernelOf(kernel_)->gamma;
    const Matrix<double> x = AfterInputStage(input_, held_out_.view());
    for (const double square : SquaredNorms(x.view())) {
      facts.radius = std::max(facts.radius, std::sqrt(square));
    }
    return facts;
  }

  absl::Status BuildAndMeasure() {
    PHIMAP_RETURN_IF_ERROR(BuildMapping());
    PHIMAP_RETURN_IF_ERROR(Certify());
    return CheckPrecision();
  }

  // float32 must hold what float64 says. Where it does not, an open spec is factored again for
  // float64, at its own rank tolerance; a spec that insists on float32 fails.
  absl::Status BuildInServingType() {
    const absl::Status status = BuildAndMeasure();
    if (status.ok() || spec_.mapping.serving_type.has_value()) return status;
    const std::optional<ErrorDetail> detail = DetailOf(status);
    if (!detail.has_value() ||
        (detail->reason != "PRECISION" && detail->reason != "NOT_REPRESENTABLE")) {
      return status;
    }
    serving_type_ = FloatType::kFloat64;
    PHIMAP_RETURN_IF_ERROR(BuildAndMeasure());
    const std::vector<std::string> message = absl::StrSplit(status.message(), ';');
    certificate_.warnings.push_back(
        absl::StrCat("served in float64, because float32 will not do: ", message[0]));
    return absl::OkStatus();
  }

  absl::Status CheckPrecision() {
    if (serving_type_ == FloatType::kFloat64 || !certificate_.serving_error.has_value()) {
      return absl::OkStatus();
    }
    const double error = certificate_.serving_error->max / certificate_.serving_error->scale;
    if (error <= kServingTolerance) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "PRECISION", "spec.serving_type",
        absl::StrCat("float32 features err by up to ", error,
                     " of the largest on held-out rows, over the tolerance of ", kServingTolerance,
                     "; leave serving_type open or ask for float64"),
        {{"limit", absl::StrCat(kServingTolerance)}, {"actual", absl::StrCat(error)}});
  }

  // Rows of normal numbers with each column's mean and deviation: of the stream's kind, but
  // nobody's data. Only where such a row has no features to compare is it moved towards a landmark.
  std::optional<SelfCheck> MakeGoldenVectors() {
    const Matrix<float> rows = MadeUpRows();
    return MakeSelfCheck(mapping_.served, rows,
                         spec_.mapping.has_landmarks()
                             ? std::as_const(anchors_).view().Rows(0, rows.rows())
                             : ConstMatrixView<double>());
  }

  Matrix<float> MadeUpRows() {
    const int64_t columns = sample_.columns();
    const RandomStream normals(spec_.seed, StreamId::kSelfCheck);
    Matrix<float> rows(SelfCheckRows(columns, mapping_.served.output_columns()), columns);
    for (int64_t i = 0; i < rows.rows(); ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double deviation = std::sqrt(state().moments.population_variance(j));
        const double value = state().moments.mean(j) +
                             deviation * normals.Normal(static_cast<uint64_t>(i * columns + j));
        // A column beyond float32 is 0 here: any number will do.
        rows(i, j) = std::abs(value) < 1e38 ? static_cast<float>(value) : 0.0f;
      }
    }
    return rows;
  }

  void CertifyFactor() {
    const int64_t rank = mapping_.cholesky.rank();
    certificate_.rank = rank;
    certificate_.tolerance = mapping_.tolerance;
    certificate_.largest_residual = mapping_.cholesky.largest_residual;
    certificate_.trace_residual = mapping_.cholesky.residual_trace / mapping_.trace;
    certificate_.pivots = mapping_.cholesky.diagonal;
    if (spec_.mapping.kind == MappingKind::kF3 && rank < spec_.mapping.dimensions) {
      certificate_.warnings.push_back(
          absl::StrCat("rank ", rank, " is below the ", spec_.mapping.dimensions,
                       " dimensions: F2 would be smaller and lose nothing"));
    }
  }

  // Over the first rows of the pool, whose order is random: a uniform sample of it. A kernel that
  // is 0 on all of them has no spectrum.
  absl::Status CertifySpectrum() {
    PHIMAP_RETURN_IF_ERROR(Report("certificate", spectrum_part_, 0));
    const auto count = std::min<int64_t>(kMaxSpectrumRows, split_.pool.size());
    if (count == 0) return absl::OkStatus();
    const Matrix<double> rows =
        state().reservoir.Gather(absl::MakeConstSpan(split_.pool).first(count));
    const Matrix<double> x = AfterInputStage(input_, rows.view());
    absl::StatusOr<Spectrum> spectrum = MeasureSpectrum(KernelProgram::Compile(kernel_), x.view(),
                                                        std::as_const(mapping_.pivots).view(),
                                                        std::as_const(mapping_.factor).view());
    if (spectrum.ok()) certificate_.spectrum = *std::move(spectrum);
    return absl::OkStatus();
  }

  void CertifyComponents() {
    const int64_t kept = static_cast<int64_t>(kernel_pca_.eigenvalues.size());
    if (kept < spec_.mapping.dimensions) {
      certificate_.warnings.push_back(absl::StrCat(
          "of ", spec_.mapping.dimensions, " components ", spec_.mapping.dimensions - kept,
          " were dropped: their eigenvalues are at most ", kernel_pca_.tolerance));
    }
    const double largest = kernel_pca_.gram.has_value() ? kLargestSingleResidual : kLargestResidual;
    if (kernel_pca_.residual > largest) {
      certificate_.warnings.push_back(absl::StrCat(
          "the iteration ended after ", kernel_pca_.sweeps, " sweeps with a relative residual of ",
          kernel_pca_.residual, ": components of close eigenvalues are mixed"));
    }
    if (!kernel_pca_.gram.has_value()) return;
    const double error = kernel_pca_.gram->error.norm;
    const auto above = std::count_if(kernel_pca_.eigenvalues.begin(), kernel_pca_.eigenvalues.end(),
                                     [&](double value) { return value > error; });
    if (above == kept) return;
    certificate_.warnings.push_back(absl::StrCat(
        "the randomized Gram matrix is off by ", error, ", and the eigenvalues of components from ",
        above + 1,
        " on are no larger: they may be of noise alone; sparsify less, or ask for fewer"));
  }

  absl::StatusOr<BuiltVersion> Encode() {
    PHIMAP_RETURN_IF_ERROR(Report("encode", encode_part_, 0));
    MappingSpec resolved = spec_.mapping;
    if (resolved.Has("pool_rows")) resolved.pool_rows = state().pool_rows;
    resolved.serving_type = serving_type_;
    BuiltVersion built;
    built.provenance = {.mapping_text = resolved.ToText(),
                        .kernel_text = kernel_.ToText(),
                        .standardize = spec_.standardize,
                        .seed = spec_.seed};
    built.certificate = certificate_;
    built.input_columns = mapping_.served.input_columns();
    built.output_columns = mapping_.served.output_columns();
    built.serving_type = serving_type_;
    Artifact artifact{.plan = std::move(mapping_.served),
                      .provenance = built.provenance,
                      .certificate = EncodeCertificate(certificate_)};
    PHIMAP_ASSIGN_OR_RETURN(built.bytes, EncodeArtifact(artifact));
    PHIMAP_RETURN_IF_ERROR(Report("encode", encode_part_, 1));
    return built;
  }

  void Apportion() {
    const BuildShares shares = SharesOfBuild(spec_, stream_rows(), sample_.columns());
    double end = kSampleShare;
    sample_part_ = {0, end};
    const double rest = 1 - kSampleShare - kEncodeShare;
    for (const auto& [part, share] :
         {std::pair(&choose_part_, shares.choose), std::pair(&mapping_part_, shares.mapping),
          std::pair(&spectrum_part_, shares.spectrum),
          std::pair(&measurement_part_, shares.measurement)}) {
      *part = {end, end + rest * share};
      end = part->end;
    }
    encode_part_ = {end, 1};
  }

  // A second factorization does not move the bar back.
  absl::Status Report(absl::string_view phase, const Part& part, double fraction) {
    reported_ = std::max(reported_, part.begin + (part.end - part.begin) * fraction);
    return monitor_.Checkpoint(phase, std::min(reported_, 1.0));
  }

  const BuildSpec& spec_;
  StreamSample sample_;
  BuildMonitor& monitor_;
  double reported_ = 0;
  // Of the steps, in proportion to the time they are expected to take.
  Part sample_part_;
  Part choose_part_;
  Part mapping_part_;
  Part spectrum_part_;
  Part measurement_part_;
  Part encode_part_;
  std::optional<double> pool_trace_residual_;
  FloatType serving_type_;
  SampleSplit split_;
  Matrix<double> held_out_;
  InputStage input_;
  std::vector<double> unprojected_scale_;
  KernelExpression kernel_;
  // Empty, or what the certificate says of its definiteness.
  std::string kernel_warning_;
  Matrix<double> landmarks_;
  // Landmarks as they came, which golden rows are moved towards where they must.
  Matrix<double> anchors_;
  LandmarkMapping mapping_;
  KernelPca kernel_pca_;  // its plans are in mapping_
  Certificate certificate_;
};

absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor) {
  return VersionBuilder(spec, std::move(sample), monitor).Run();
}

}  // namespace phimap
