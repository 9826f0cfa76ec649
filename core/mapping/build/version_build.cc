#include "core/mapping/build/version_build.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/certificate.h"
#include "core/certificate/fidelity.h"
#include "core/certificate/measurement.h"
#include "core/linalg/blas.h"
#include "core/linalg/tiles.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/certification.h"
#include "core/mapping/build/drift_step.h"
#include "core/mapping/build/kernel_access.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

// Builds the mapping, and reports to BuildStep::kMapping. Errors: those of the builder.
absl::StatusOr<BuiltMapping> BuildMapping(const BuildSpec& spec, const LandmarkTask& task,
                                          BuildProgress& progress) {
  const Family& mapping = *spec.mapping.kind;
  const bool factors = mapping.gram_share != nullptr;
  const double gram = factors ? mapping.gram_share(spec, task) : 0;
  const auto threads = [&] { return progress.threads(); };
  const auto checkpoint = [&](double f) {
    return progress.Report(BuildStep::kMapping,
                           !factors   ? "draw"
                           : f < gram ? "gram"
                                      : "factor",
                           f);
  };
  return mapping.build(spec, task, {threads, checkpoint});
}

// The largest serving_distance of a certificate at which a version is served in float32 unless the
// spec asks for a type. The distance compares smoothers at λ = 10⁻², so a learner regularized that
// much predicts alike from both types: within this share, whatever the labels.
constexpr double kMaxServingDistance = 0.02;
// The largest distance at λ = 10⁻⁶ between plans for the two types at which float32 is chosen, as
// large as that of a good version (verdict.h). A learner that tunes its λ and has many rows uses
// such directions: eigenvalues grow with the number of rows, so that λ = 10⁻⁴ and 30,000 rows are
// to each of them what 10⁻⁶ is to the few rows that are compared.
constexpr double kMaxTunedServingDistance = 0.1;
constexpr double kTunedServingLambda = 1e-6;

// What the rank tolerance of float32 costs.
struct RankLoss {
  // Distance between the mapping, which was built for float32, and one that is built for float64
  // from the same landmarks, on held-out rows.
  double distance = 0;
  // The distance of the same two mappings at kTunedServingLambda.
  double tuned_distance = 0;
  // The kernel's dimensions on the landmarks, if these are few and float32 does not keep them all.
  std::optional<int64_t> kernel_rank;

  // Whether a learner would lose too much. NaN counts as too much, and so does a part of a kernel
  // of few dimensions: that float64 keeps it whole costs little, and learners whose labels depend
  // on columns that vary little need it.
  bool too_much() const {
    return kernel_rank.has_value() || !(distance <= kMaxServingDistance) ||
           !(tuned_distance <= kMaxTunedServingDistance);
  }
};

// Returns the symmetric matrix of inner products of rows.
Matrix<double> InnerProducts(const Matrix<double>& rows) {
  Matrix<double> gram = Matrix<double>::Uninit(rows.rows(), rows.rows());
  SymmetricRankUpdate(1, rows.view(), 0, gram.view());
  MirrorLowerTriangle(gram.view());
  return gram;
}

// Returns the first `columns` columns.
Matrix<double> FirstColumns(const Matrix<double>& rows, int64_t columns) {
  return Converted<double, double>(rows.view().Block(0, 0, rows.rows(), columns));
}

// Measures what serving in float32 costs a learner. Nothing is lost if the mapping was built for
// float64 or kept every rank that float64 would keep. REQUIRES: at least kMinHeldOutRows held-out
// rows.
//
// Cost: for F2 and F3, which know what a build for float64 would add (FactorTail), the coordinates
// of kMaxFidelityRows rows and two of their Gram matrices; for other mappings, a whole build.
// Errors: those of the builder and of `progress`.
absl::StatusOr<RankLoss> MeasureRankLoss(const BuildSpec& spec, const KernelAccess& kernel,
                                         const BuiltMapping& mapping, BuildProgress& progress) {
  RankLoss loss;
  if (!mapping.lost_rank) return loss;
  Matrix<double> cut, whole;
  if (spec.mapping.kind->has_factor) {
    PHIMAP_ASSIGN_OR_RETURN(whole, kernel.HeldOutCoordinates(mapping, FloatType::kFloat32));
    cut = FirstColumns(whole, mapping.rank());
    if (mapping.tail.ends_sharply) loss.kernel_rank = mapping.rank() + mapping.tail.rank();
  } else {
    const LandmarkTask task = kernel.TaskFor(FloatType::kFloat64);
    PHIMAP_ASSIGN_OR_RETURN(const BuiltMapping wide, BuildMapping(spec, task, progress));
    PHIMAP_ASSIGN_OR_RETURN(cut, kernel.HeldOutCoordinates(mapping, FloatType::kFloat32));
    PHIMAP_ASSIGN_OR_RETURN(whole, kernel.HeldOutCoordinates(wide, FloatType::kFloat64));
  }
  const auto threads = [&] { return progress.threads(); };
  const auto report = [&](double) {
    return progress.Report(BuildStep::kSpectrum, "certificate", 0);
  };
  PHIMAP_ASSIGN_OR_RETURN(
      const std::vector<double> distances,
      DistancesBetween(InnerProducts(whole), InnerProducts(cut),
                       {kServingLambda, kTunedServingLambda}, {threads, report}));
  loss.distance = distances[0];
  loss.tuned_distance = distances[1];
  return loss;
}

// Adds the loss to serving_distance and sets kernel_rank of the certificate, if it has a
// serving_distance. By the triangle inequality, the sum bounds the distance between the features as
// served and those of a build for float64, up to the norms that distances are relative to.
void AddRankLoss(const RankLoss& loss, Certificate& certificate) {
  if (!certificate.serving_distance.has_value()) return;
  *certificate.serving_distance += loss.distance;
  certificate.kernel_rank = loss.kernel_rank;
}

// Features are negligible if they are smaller than this share of √K(x, x).
constexpr double kLeastFeature = 1e-4;

// Returns a lower bound for the scale by which the serving error is judged. The bound is 0 unless
// features are bounded by √K(x, x). It protects rows that are far from all landmarks: their
// features are only round-off, which float64 would not improve.
double LeastScale(const MappingSpec& mapping, const KernelAccess& kernel) {
  if (!mapping.kind->bounded_by_kernel) return 0;
  double largest = 0;
  for (const double k : kernel.HeldOutDiagonal()) largest = std::max(largest, std::abs(k));
  return kLeastFeature * std::sqrt(largest);
}

absl::Status Imprecise(double error, absl::string_view of_what) {
  return WithRemedy(
      MakeError(absl::StatusCode::kFailedPrecondition, reason::kServingPrecisionTooLow,
                "serving_type",
                absl::StrCat("float32 features err by up to ", error, " of ", of_what,
                             " on held-out rows, over the tolerance of ", kServingTolerance),
                {{"limit", absl::StrCat(kServingTolerance)}, {"actual", absl::StrCat(error)}}),
      "leave serving_type open or ask for float64");
}

// Checks that float32 features are precise enough (kServingTolerance). For all rows, the error is
// divided by the largest ‖F(x)‖. If the certificate has a serving_share, a second condition applies
// to 95 % of the rows: their error must also be small when divided by √K(x, x).
absl::Status CheckPrecision(const BuildSpec& spec, const KernelAccess& kernel,
                            const Certificate& certificate) {
  if (!certificate.serving_error.has_value()) return absl::OkStatus();
  if (const double share = certificate.serving_share.value_or(0); share > kServingTolerance) {
    return Imprecise(share, "√K(x, x), of a row's own length,");
  }
  const MeasuredError& serving = *certificate.serving_error;
  if (serving.max <= kServingTolerance * std::max(serving.scale, LeastScale(spec.mapping, kernel)))
    return absl::OkStatus();
  return Imprecise(serving.max / serving.scale, "the largest");
}

bool IsForWantOfPrecision(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  // KERNEL_ZERO is included, because float32 may have rounded rows to 0 whose K(x, x) is not 0.
  return detail && (detail->reason == reason::kServingPrecisionTooLow ||
                    detail->reason == reason::kValueNotRepresentable ||
                    detail->reason == reason::kKernelZero);
}

// What serving in float32 costs: `distance` between smoothers in all, and the rank it keeps.
std::string LossText(const RankLoss& loss, double distance, const BuiltMapping& mapping) {
  if (loss.kernel_rank.has_value()) {
    return absl::StrCat("its tolerance keeps ", mapping.rank(), " of the ",
                        CountOf(*loss.kernel_rank, "dimension"),
                        " that the kernel has on the landmarks");
  }
  const bool is_tuned = distance <= kMaxServingDistance;
  return absl::StrFormat(
      "on held-out rows its smoother at λ = %g differs by %.3g from that of a build for float64 "
      "from the same landmarks, over the limit of %g%s",
      is_tuned ? kTunedServingLambda : kServingLambda, is_tuned ? loss.tuned_distance : distance,
      is_tuned ? kMaxTunedServingDistance : kMaxServingDistance,
      mapping.lost_rank && mapping.rank() > 0
          ? absl::StrCat("; the tolerance of float32 keeps ", CountOf(mapping.rank(), "landmark"))
          : "");
}

// The steps of BuildVersion, in order. Members hold the results of earlier steps.
class VersionBuilder {
 public:
  VersionBuilder(const BuildSpec& spec, BuildMonitor& monitor) : spec_(spec), progress_(monitor) {}

  absl::StatusOr<BuiltVersion> Run(StreamSample stream, KernelSource* source) {
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kSample, "sample", 0));
    PHIMAP_RETURN_IF_ERROR(CheckStream(spec_, stream));
    progress_.Apportion(SharesOfBuild(spec_, stream.rows(), stream.columns()));
    const BuildSample sample = Divide(spec_, std::move(stream));
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<KernelAccess> kernel,
                            spec_.remote.has_value()
                                ? FetchRemoteKernel(spec_, sample, source, progress_)
                                : PrepareComputedKernel(spec_, sample, progress_));
    PHIMAP_RETURN_IF_ERROR(BuildInServingType(sample, *kernel));
    const LandmarkTask task = kernel->TaskFor(mapping_.served.serving_type());
    PHIMAP_ASSIGN_OR_RETURN(reference_,
                            ReferenceOfBuild({spec_, sample, *kernel, task}, mapping_, progress_));
    return Encode(sample, *kernel);
  }

 private:
  // Builds the version in the serving type that the spec requires. If the spec requires float32 and
  // float32 is not precise enough, the build fails; if a learner loses by it, the certificate says
  // so. If the spec leaves the type open, builds in float32 first, and in either case builds again
  // in float64, which has its own rank tolerance.
  absl::Status BuildInServingType(const BuildSample& sample, const KernelAccess& kernel) {
    const std::optional<FloatType> wanted = spec_.mapping.serving_type;
    if (wanted == FloatType::kFloat64) return BuildAndCertify(*wanted, sample, kernel);
    std::string loss;
    const absl::Status status = BuildInFloat32(sample, kernel, loss);
    if (status.ok() && loss.empty()) return status;
    if (wanted.has_value()) {
      PHIMAP_RETURN_IF_ERROR(status);
      certificate_.warnings.push_back(absl::StrCat("float32 loses what a learner needs: ", loss,
                                                   "; leave serving_type open or ask for float64"));
      return absl::OkStatus();
    }
    if (!status.ok() && !IsForWantOfPrecision(status)) return status;
    PHIMAP_RETURN_IF_ERROR(BuildAndCertify(FloatType::kFloat64, sample, kernel));
    certificate_.warnings.push_back(
        status.ok()
            ? absl::StrCat("served in float64, because float32 loses what a learner needs: ", loss)
            : absl::StrCat("served in float64, because float32 will not do: ", ProblemOf(status)));
    return absl::OkStatus();
  }

  // Builds and certifies in float32. If a learner loses too much by it, says so in `loss`, and then
  // leaves the certificate unmade if the spec leaves the type open and the rank alone decides.
  absl::Status BuildInFloat32(const BuildSample& sample, const KernelAccess& kernel,
                              std::string& loss) {
    const LandmarkTask task = kernel.TaskFor(FloatType::kFloat32);
    PHIMAP_ASSIGN_OR_RETURN(mapping_, BuildMapping(spec_, task, progress_));
    RankLoss of_rank;
    if (sample.held_out.rows() >= kMinHeldOutRows) {
      PHIMAP_ASSIGN_OR_RETURN(of_rank, MeasureRankLoss(spec_, kernel, mapping_, progress_));
    }
    if (of_rank.too_much()) {
      loss = LossText(of_rank, of_rank.distance, mapping_);
      if (!spec_.mapping.serving_type.has_value()) return absl::OkStatus();
    }
    PHIMAP_ASSIGN_OR_RETURN(certificate_,
                            Certify({spec_, sample, kernel, task}, mapping_, progress_));
    PHIMAP_RETURN_IF_ERROR(CheckPrecision(spec_, kernel, certificate_));
    AddRankLoss(of_rank, certificate_);
    const double distance = certificate_.serving_distance.value_or(0);
    if (of_rank.too_much() || !(distance <= kMaxServingDistance)) {
      loss = LossText(of_rank, distance, mapping_);
    }
    return absl::OkStatus();
  }

  absl::Status BuildAndCertify(FloatType serving_type, const BuildSample& sample,
                               const KernelAccess& kernel) {
    mapping_ = BuiltMapping();  // frees the memory of an earlier attempt
    const LandmarkTask task = kernel.TaskFor(serving_type);
    PHIMAP_ASSIGN_OR_RETURN(mapping_, BuildMapping(spec_, task, progress_));
    PHIMAP_ASSIGN_OR_RETURN(certificate_,
                            Certify({spec_, sample, kernel, task}, mapping_, progress_));
    return absl::OkStatus();
  }

  absl::StatusOr<BuiltVersion> Encode(const BuildSample& sample, const KernelAccess& kernel) {
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kEncode, "encode", 0));
    MappingSpec resolved = spec_.mapping;
    if (resolved.Has("pool_rows")) resolved.pool_rows = sample.stream.pool_rows();
    resolved.serving_type = mapping_.served.serving_type();
    BuiltVersion built;
    built.provenance = {.spec_text = resolved.ToText(),
                        .kernel_text = kernel.ToText(),
                        .standardize = spec_.standardize,
                        .seed = spec_.seed,
                        .column_names = spec_.column_names};
    built.certificate = certificate_;
    built.input_columns = mapping_.served.input_columns();
    built.output_columns = mapping_.served.output_columns();
    built.serving_type = mapping_.served.serving_type();
    const Artifact artifact{.plan = std::move(mapping_.served),
                            .provenance = built.provenance,
                            .certificate = EncodeCertificate(certificate_),
                            .drift_reference = reference_.has_value()
                                                   ? EncodeDriftReference(*reference_)
                                                   : std::string()};
    PHIMAP_ASSIGN_OR_RETURN(built.bytes, EncodeArtifact(artifact));
    PHIMAP_RETURN_IF_ERROR(progress_.Report(BuildStep::kEncode, "encode", 1));
    return built;
  }

  const BuildSpec& spec_;
  BuildProgress progress_;
  BuiltMapping mapping_;
  Certificate certificate_;
  // nullopt if too few rows were held out.
  std::optional<DriftReference> reference_;
};

}  // namespace

absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor, KernelSource* source) {
  return VersionBuilder(spec, monitor).Run(std::move(sample), source);
}

}  // namespace phimap
