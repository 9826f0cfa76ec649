#include "core/mapping/version_build.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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
#include "core/mapping/outside_values.h"
#include "core/mapping/polynomial_mapping.h"
#include "core/mapping/random_projection.h"
#include "core/mapping/theorem.h"
#include "core/plan/input_stage.h"
#include "core/plan/residual.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

Matrix<double> Transposed(const Matrix<double>& a) {
  Matrix<double> t = Matrix<double>::Uninit(a.cols(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) t(j, i) = a(i, j);
  }
  return t;
}

}  // namespace

// The steps of BuildVersion, in order; what one leaves behind the next finds in the members.
// Features under this share of √K(x, x) say next to nothing.
constexpr double kLeastFeature = 1e-4;

class VersionBuilder {
 public:
  VersionBuilder(const BuildSpec& spec, StreamSample sample, BuildMonitor& monitor,
                 KernelSource* source)
      : spec_(spec),
        sample_(std::move(sample)),
        source_(source),
        progress_(monitor),
        serving_type_(spec.mapping.serving_type.value_or(FloatType::kFloat32)) {}

  absl::StatusOr<BuiltVersion> Run() {
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kSample, "sample", 0));
    PHIMAP_RETURN_IF_ERROR(CheckRows());
    progress_.Apportion(SharesOfBuild(spec_, sample_.rows(), sample_.columns()));
    PHIMAP_RETURN_IF_ERROR(Split());
    if (spec_.outside.has_value()) {
      PHIMAP_RETURN_IF_ERROR(FetchValues());
    } else {
      PHIMAP_RETURN_IF_ERROR(PrepareKernel());
    }
    PHIMAP_RETURN_IF_ERROR(BuildInServingType());
    return Encode();
  }

 private:
  absl::Status PrepareKernel() {
    PHIMAP_RETURN_IF_ERROR(ResolveKernel());
    if (spec_.mapping.has_landmarks()) {
      ProjectInputs();
      PHIMAP_RETURN_IF_ERROR(Choose());
      PHIMAP_RETURN_IF_ERROR(ProbeKernel());
    }
    return absl::OkStatus();
  }

  bool has_factor() const {
    return spec_.mapping.kind == MappingKind::kF2 || spec_.mapping.kind == MappingKind::kF3;
  }

  // A shift would make zeros other numbers, and sparse rows dense: they are scaled only.
  bool shifts() const { return sample_.kind() == ExampleKind::kDense; }

  absl::Status CheckRows() {
    PHIMAP_RETURN_IF_ERROR(CheckStreamRows(spec_, sample_.rows()));
    PHIMAP_RETURN_IF_ERROR(spec_.CheckExamples(sample_.kind(), sample_.columns()));
    if (sample_.gram() != nullptr) return sample_.gram()->CheckComplete();
    return sample_.moments().CheckFinite();
  }

  absl::Status Split() {
    input_.columns = sample_.columns();
    if (sample_.gram() != nullptr) {
      split_.held_out = sample_.gram()->rows_of(OutsidePart::kHeldOut);
      return absl::OkStatus();
    }
    // Landmarks that are given are none of the sample's rows.
    split_ = SplitSample(sample_.reservoir().rows_seen(), sample_.reservoir().size(),
                         spec_.mapping.landmarks - spec_.mapping.given_rows(), sample_.pool_rows(),
                         spec_.seed);
    if (spec_.outside.has_value() &&
        static_cast<int64_t>(split_.held_out.size()) > kMaxOutsideHeldOutRows) {
      split_.held_out.resize(kMaxOutsideHeldOutRows);
    }
    held_out_ = sample_.reservoir().Gather(split_.held_out);
    // Angles keep more float32 digits about the mean, and a kernel of x − y does not see the shift.
    const bool centre =
        shifts() && (spec_.standardize || spec_.mapping.kind == MappingKind::kFourier);
    for (int64_t j = 0; j < input_.columns; ++j) {
      if (centre) input_.shift.push_back(sample_.moments().mean(j));
      if (spec_.standardize) input_.scale.push_back(sample_.moments().StandardScale(j));
    }
    return absl::OkStatus();
  }

  // Of a kernel that is not computed here: landmarks are drawn, and all its values asked for.
  absl::Status FetchValues() {
    const auto checkpoint = [&](double f) {
      return progress_.Report(BuildStep::kChoose, "kernel", f);
    };
    if (sample_.gram() != nullptr) {
      landmark_rows_ = sample_.gram()->rows_of(OutsidePart::kLandmarks);
      block_.kind = ExternalFeatures::ExampleKind::kRowNumbers;
      for (const int64_t row : landmark_rows_) block_.examples.push_back(absl::StrCat(row));
      GramExamples examples(*sample_.gram());
      PHIMAP_ASSIGN_OR_RETURN(values_, FetchOutsideValues(spec_, examples, checkpoint));
      return absl::OkStatus();
    }
    PHIMAP_CHECK(source_ != nullptr);
    PHIMAP_ASSIGN_OR_RETURN(LandmarkChoice choice, Chosen(NeverStop));
    const Matrix<double>& rows = choice.rows;
    block_ = {.kernel = spec_.outside->kernel,
              .endpoint = spec_.outside->endpoint,
              .kind = ExternalFeatures::ExampleKind::kDense,
              .examples = {}};
    for (int64_t i = 0; i < rows.rows(); ++i) {
      block_.examples.emplace_back(reinterpret_cast<const char*>(rows.row(i)),
                                   static_cast<size_t>(rows.cols()) * sizeof(double));
    }
    const auto spectrum = std::min<int64_t>(kMaxOutsideSpectrumRows, split_.pool.size());
    ServiceExamples examples(
        std::move(choice.rows), held_out_.Clone(),
        sample_.reservoir().Gather(absl::MakeConstSpan(split_.pool).first(spectrum)), *source_);
    PHIMAP_ASSIGN_OR_RETURN(values_, FetchOutsideValues(spec_, examples, checkpoint));
    return absl::OkStatus();
  }

  absl::Status ResolveKernel() {
    double scale = 0;
    double median = 0;
    if (spec_.kernel.NeedsScale()) {
      PHIMAP_ASSIGN_OR_RETURN(scale, ScaleGamma(sample_.moments(), spec_.standardize, shifts()));
    }
    if (spec_.kernel.NeedsMedian()) {
      const Matrix<double> pool = sample_.reservoir().Gather(split_.pool);
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

  absl::StatusOr<LandmarkChoice> Chosen(Checkpoint checkpoint) const {
    return ChooseLandmarks({.mapping = spec_.mapping,
                            .seed = spec_.seed,
                            .kernel = kernel_,
                            .input = input_,
                            .reservoir = sample_.reservoir(),
                            .pool = split_.pool,
                            .shifts = shifts(),
                            .given = sample_.given(),
                            .threads = [&] { return progress_.threads(); }},
                           checkpoint);
  }

  absl::Status Choose() {
    PHIMAP_ASSIGN_OR_RETURN(LandmarkChoice choice, Chosen([&](double f) {
                              return progress_.Report(BuildStep::kChoose, "choose", f);
                            }));
    pool_trace_residual_ = choice.pool_trace_residual;
    const ConstMatrixView<double> rows = std::as_const(choice.rows).view();
    anchors_ = Matrix<double>::Uninit(kMaxSelfCheckRows, rows.cols());
    for (int64_t i = 0; i < anchors_.rows(); ++i) {
      std::copy_n(rows.row(i % rows.rows()), rows.cols(), anchors_.row(i));
    }
    if (shifts() && kernel_.IsTranslationInvariant()) CentreOn(rows, input_);
    landmarks_ = AfterInputStage(input_, rows);
    return absl::OkStatus();
  }

  // The verdict on a kernel that is not positive semidefinite by construction.
  absl::Status ProbeKernel() {
    if (kernel_.IsProvenPositiveSemidefinite()) return absl::OkStatus();
    PHIMAP_ASSIGN_OR_RETURN(
        const DefinitenessProbe probe,
        ProbeDefiniteness(KernelProgram::Compile(kernel_), landmarks_.view(), [&](double f) {
          return progress_.Report(BuildStep::kChoose, "sample", f);
        }));
    const bool needs_definite = has_factor() || spec_.mapping.kind == MappingKind::kKernelPca;
    if (probe.indefinite() && needs_definite) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition, "NOT_POSITIVE_SEMIDEFINITE", "kernel",
          absl::StrCat(kernel_.ToText(), " is not positive semidefinite: ", probe.ToText(),
                       ". F2, F3 and kernel PCA need a positive semidefinite kernel, F1 takes any"),
          {{"eigenvalue", absl::StrCat(probe.smallest)}});
    }
    indefinite_ = probe.indefinite();
    kernel_warning_ = absl::StrCat(
        probe.indefinite() ? "the kernel is not positive semidefinite: "
                           : "the kernel is not known to be positive semidefinite: ",
        probe.ToText(),
        needs_definite ? "" : ". It is a similarity, and no margin in a feature space is promised");
    return absl::OkStatus();
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
    LandmarkTask task{.kernel = kernel_,
                      .input = InputCopy(),
                      .landmarks = landmarks_.view(),
                      .serving_type = serving_type_};
    OutsideLandmarks outside;
    if (values_.has_value()) {
      outside = {values_->gram.view(), values_->unit, block_};
      task.outside = &outside;
    }
    const KernelPcaTask pca{.components = spec_.mapping.dimensions,
                            .centred = spec_.mapping.centred,
                            .seed = spec_.seed,
                            .gram = {spec_.mapping.sparsify, spec_.mapping.quantise},
                            .rounding = spec_.mapping.rounding};
    const bool is_pca = spec_.mapping.kind == MappingKind::kKernelPca;
    const double gram = is_pca ? StepsOfKernelPca(task, pca).gram : GramShare(task);
    const auto threads = [&] { return progress_.threads(); };
    const auto checkpoint = [&](double f) {
      return progress_.Report(BuildStep::kMapping, f < gram ? "gram" : "factor", f);
    };
    if (spec_.mapping.kind == MappingKind::kF1) {
      PHIMAP_ASSIGN_OR_RETURN(mapping_, BuildF1(task));
    } else if (is_pca) {
      PHIMAP_ASSIGN_OR_RETURN(kernel_pca_,
                              BuildMeasuredKernelPca(task, pca, {threads, checkpoint}));
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
    const auto checkpoint = [&](double f) {
      return progress_.Report(BuildStep::kMapping, "draw", f);
    };
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
    certificate_.stream_rows = sample_.rows();
    certificate_.pool_rows =
        sample_.gram() != nullptr ? sample_.pool_rows() : static_cast<int64_t>(split_.pool.size());
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
    if (spec_.mapping.kind == MappingKind::kKernelPca) {
      certificate_.warnings = WarningsOf(kernel_pca_, spec_.mapping.dimensions);
    }
    if (!kernel_warning_.empty()) certificate_.warnings.push_back(kernel_warning_);
    if (indefinite_ || (values_.has_value() && values_->indefinite)) {
      certificate_.theorem =
          "none: the theorems are of positive semidefinite kernels, which this one is not";
    }
    if (values_.has_value()) return CertifyOutside();
    // Equal rows are equal after rounding too, but a rounded landmark is no row's equal.
    Matrix<double> reference_rows;
    if (kernel_.HasDelta() && spec_.mapping.has_landmarks()) {
      reference_rows = RoundedTo(serving_type_, AfterInputStage(input_, held_out_.view()).view());
      mapping_.reference.input = {.columns = reference_rows.cols()};
    }
    MeasurementTask task{.served = &mapping_.served,
                         .reference = &mapping_.reference,
                         .rows = held_out_.view(),
                         .reference_rows = reference_rows.view(),
                         .kernel = std::nullopt,
                         .pivots = std::as_const(mapping_.pivots).view(),
                         .factor = std::as_const(mapping_.factor).view(),
                         .features_are_projection = spec_.mapping.kind == MappingKind::kF2};
    if (spec_.mapping.approximates_kernel()) task.kernel = KernelProgram::Compile(kernel_);
    const InputStage unprojected = UnprojectedInput();
    if (!input_.projection.empty()) task.kernel_input = &unprojected;
    const std::optional<Residual> residual = Residual::Of(
        mapping_.served, {.mapping_text = spec_.mapping.ToText(), .kernel_text = kernel_.ToText()});
    if (residual.has_value()) task.residual = &*residual;
    certificate_.self_check = MakeGoldenVectors();
    return Measure(task);
  }

  absl::Status Measure(const MeasurementTask& task) {
    const auto threads = [&] { return progress_.threads(); };
    return MeasureHeldOut(
        task,
        {threads,
         [&](double f) { return progress_.Report(BuildStep::kMeasurement, "certificate", f); }},
        certificate_);
  }

  // The landmarks whose values the plan takes, in its order.
  std::vector<int64_t> UsedLandmarks() const {
    if (has_factor()) return mapping_.cholesky.pivots;
    if (spec_.mapping.kind == MappingKind::kKernelPca) return kernel_pca_.used;
    std::vector<int64_t> all(static_cast<size_t>(spec_.mapping.landmarks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // The same from values that were asked for.
  absl::Status CertifyOutside() {
    const std::vector<int64_t> used = UsedLandmarks();
    if (!values_->warning.empty()) certificate_.warnings.push_back(values_->warning);
    if (!landmark_rows_.empty()) {
      for (const int64_t i : used) certificate_.landmark_rows.push_back(landmark_rows_[i]);
    }
    // Golden rows are values of landmarks, which the artifact shows already.
    const Matrix<double> seen = ColumnsOf(values_->gram, used);
    const int64_t golden =
        std::min(seen.rows(), SelfCheckRows(seen.cols(), mapping_.served.output_columns()));
    certificate_.self_check =
        MakeSelfCheck(mapping_.served, Converted<float, double>(seen.view().Rows(0, golden)), {});
    const Matrix<double> rows = WithSelfValues(ColumnsOf(values_->held_out, used));
    MeasurementTask task{.served = &mapping_.served,
                         .reference = &mapping_.reference,
                         .rows = rows.view(),
                         .kernel = std::nullopt,
                         .pivots = {},
                         .factor = std::as_const(mapping_.factor).view(),
                         .features_are_projection = spec_.mapping.kind == MappingKind::kF2};
    if (spec_.mapping.approximates_kernel()) task.known = &values_->known;
    const std::optional<Residual> residual =
        Residual::Of(mapping_.served, {.mapping_text = spec_.mapping.ToText()});
    if (residual.has_value()) task.residual = &*residual;
    return Measure(task);
  }

  // Held-out rows with K(x, x) as their last number.
  Matrix<double> WithSelfValues(const Matrix<double>& rows) const {
    Matrix<double> longer = Matrix<double>::Uninit(rows.rows(), rows.cols() + 1);
    for (int64_t i = 0; i < rows.rows(); ++i) {
      std::copy_n(rows.row(i), rows.cols(), longer.row(i));
      longer(i, rows.cols()) = values_->known.diagonal[static_cast<size_t>(i)];
    }
    return longer;
  }

  // What the theorem's numbers are made of beside the mapping's own.
  TheoremFacts Facts() const {
    TheoremFacts facts{.columns = input_.columns};
    if (spec_.mapping.kind == MappingKind::kKernelPca) {
      facts.components = static_cast<int64_t>(kernel_pca_.eigenvalues.size());
      for (const double value : kernel_pca_.eigenvalues) facts.share += value / kernel_pca_.trace;
      facts.residual = kernel_pca_.residual;
      facts.iterated = kernel_pca_.products > 0;
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
    const MeasuredError& serving = *certificate_.serving_error;
    if (serving.max <= kServingTolerance * std::max(serving.scale, LeastScale())) {
      return absl::OkStatus();
    }
    const double error = serving.max / serving.scale;
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "PRECISION", "spec.serving_type",
        absl::StrCat("float32 features err by up to ", error,
                     " of the largest on held-out rows, over the tolerance of ", kServingTolerance,
                     "; leave serving_type open or ask for float64"),
        {{"limit", absl::StrCat(kServingTolerance)}, {"actual", absl::StrCat(error)}});
  }

  // K(x, x) of the held-out rows.
  std::vector<double> HeldOutDiagonal() const {
    if (values_.has_value()) return values_->known.diagonal;
    const Matrix<double> x = AfterInputStage(input_, held_out_.view());
    return KernelDiagonal(KernelProgram::Compile(kernel_), x.view(), SquaredNorms(x.view()));
  }

  // What features count as at least where they are bounded by √K(x, x): those of rows that no
  // landmark is near are round-off alone, and no float64 would say more.
  double LeastScale() const {
    if (!has_factor() && spec_.mapping.kind != MappingKind::kKernelPca) return 0;
    double largest = 0;
    for (const double k : HeldOutDiagonal()) largest = std::max(largest, std::abs(k));
    return kLeastFeature * std::sqrt(largest);
  }

  // Only where a made-up row has no features to compare is it moved towards a landmark.
  std::optional<SelfCheck> MakeGoldenVectors() {
    const Matrix<float> rows = sample_.MadeUpRows(
        SelfCheckRows(sample_.columns(), mapping_.served.output_columns()), spec_.seed);
    return MakeSelfCheck(mapping_.served, rows,
                         spec_.mapping.has_landmarks()
                             ? std::as_const(anchors_).view().Rows(0, rows.rows())
                             : ConstMatrixView<double>());
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
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kSpectrum, "certificate", 0));
    absl::StatusOr<Spectrum> spectrum = FoundSpectrum();
    if (absl::IsFailedPrecondition(spectrum.status())) return absl::OkStatus();
    PHIMAP_RETURN_IF_ERROR(spectrum.status());
    certificate_.spectrum = *std::move(spectrum);
    return absl::OkStatus();
  }

  absl::StatusOr<Spectrum> FoundSpectrum() {
    const absl::Status none = absl::FailedPreconditionError("no rows");
    if (values_.has_value()) {
      if (values_->spectrum.empty()) return none;
      Matrix<double> block = Transposed(ColumnsOf(values_->spectrum, mapping_.cholesky.pivots));
      return MeasureGramSpectrum(values_->spectrum_gram.Clone(), std::move(block),
                                 std::as_const(mapping_.factor).view());
    }
    const auto count = std::min<int64_t>(kMaxSpectrumRows, split_.pool.size());
    if (count == 0) return none;
    const Matrix<double> rows =
        sample_.reservoir().Gather(absl::MakeConstSpan(split_.pool).first(count));
    const Matrix<double> x = AfterInputStage(input_, rows.view());
    return MeasureSpectrum(KernelProgram::Compile(kernel_), x.view(),
                           std::as_const(mapping_.pivots).view(),
                           std::as_const(mapping_.factor).view());
  }

  absl::StatusOr<BuiltVersion> Encode() {
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kEncode, "encode", 0));
    MappingSpec resolved = spec_.mapping;
    if (resolved.Has("pool_rows")) resolved.pool_rows = sample_.pool_rows();
    resolved.serving_type = serving_type_;
    BuiltVersion built;
    built.provenance = {.mapping_text = resolved.ToText(),
                        .kernel_text = spec_.outside ? spec_.outside->ToText() : kernel_.ToText(),
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
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kEncode, "encode", 1));
    return built;
  }

  const BuildSpec& spec_;
  StreamSample sample_;
  KernelSource* const source_;
  BuildProgress progress_;
  std::optional<double> pool_trace_residual_;
  FloatType serving_type_;
  SampleSplit split_;
  Matrix<double> held_out_;
  InputStage input_;
  std::vector<double> unprojected_scale_;
  KernelExpression kernel_;
  // Empty, or what the certificate says of its definiteness.
  std::string kernel_warning_;
  // A similarity under F1.
  bool indefinite_ = false;
  // Of a kernel that is not computed here: its values, the stage with all landmarks, and where
  // these stood, if that matters.
  std::optional<OutsideValues> values_;
  ExternalFeatures block_;
  std::vector<int64_t> landmark_rows_;
  Matrix<double> landmarks_;
  // Landmarks as they came, which golden rows are moved towards where they must.
  Matrix<double> anchors_;
  LandmarkMapping mapping_;
  KernelPca kernel_pca_;  // its plans are in mapping_
  Certificate certificate_;
};

absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor, KernelSource* source) {
  return VersionBuilder(spec, std::move(sample), monitor, source).Run();
}

}  // namespace phimap
