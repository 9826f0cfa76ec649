#include "core/certificate/artifact_review.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/certificate/self_check.h"
#include "core/drift/drift_reference.h"
#include "core/engine/engine.h"
#include "core/head/head.h"
#include "core/head/head_program.h"
#include "core/head/report.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"

namespace phimap {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 53;
constexpr double kRoundOff = 1e-9;

absl::Status Refused(absl::string_view reason, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason, "", absl::StrCat("artifact: ", what));
}

absl::Status CheckText(absl::string_view what, absl::string_view text) {
  if (IsReadableText(text)) return absl::OkStatus();
  return Refused(
      reason::kTextUnreadable,
      absl::StrCat("the text of its ", what, " is not valid UTF-8, or has control characters"));
}

// Checks a text that is shown on a line of its own. A line feed in it could fake further lines.
absl::Status CheckLine(absl::string_view what, absl::string_view text) {
  if (text.find('\n') == absl::string_view::npos) return CheckText(what, text);
  return Refused(reason::kTextUnreadable,
                 absl::StrCat("the text of its ", what, " has more than one line"));
}

absl::Status CheckTexts(const Provenance& provenance, const Certificate& certificate) {
  PHIMAP_RETURN_IF_ERROR(CheckLine("mapping", provenance.spec_text));
  PHIMAP_RETURN_IF_ERROR(CheckLine("kernel", provenance.kernel_text));
  PHIMAP_RETURN_IF_ERROR(CheckLine("policy", certificate.policy));
  PHIMAP_RETURN_IF_ERROR(CheckText("theorem", certificate.theorem));
  PHIMAP_RETURN_IF_ERROR(CheckText("theorem scope", certificate.theorem_scope));
  for (const std::string& name : provenance.column_names) {
    PHIMAP_RETURN_IF_ERROR(CheckLine("column names", name));
  }
  for (const std::string& warning : certificate.warnings) {
    PHIMAP_RETURN_IF_ERROR(CheckText("warnings", warning));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(absl::string_view what, double value, double least) {
  if (std::isfinite(value) && value >= least) return absl::OkStatus();
  return Refused(reason::kCertificateInvalid,
                 absl::StrCat("its certificate has the value ", value, " for ", what, ", expected ",
                              std::isfinite(value) ? absl::StrCat("at least ", least)
                                                   : std::string("a finite number")));
}

absl::Status CheckCount(absl::string_view what, int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return absl::OkStatus();
  return Refused(reason::kCertificateInvalid, absl::StrCat("its certificate has the value ", count,
                                                           " for ", what, ", expected 0..", most));
}

absl::Status CheckError(absl::string_view what, const std::optional<MeasuredError>& error) {
  if (!error.has_value()) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(CheckNumber(absl::StrCat("the mean ", what), error->mean, 0));
  // If all errors are equal, rounding can put their mean slightly above their maximum.
  PHIMAP_RETURN_IF_ERROR(
      CheckNumber(absl::StrCat("the largest ", what), error->max, error->mean * (1 - kRoundOff)));
  PHIMAP_RETURN_IF_ERROR(CheckNumber(absl::StrCat("the scale of the ", what), error->scale, 0));
  return CheckCount(absl::StrCat("measurements of the ", what), error->count, kMaxCount);
}

// Checks the statements about the kernel error of all pairs: they must be consistent with the
// errors of the measured pairs.
absl::Status CheckPairStatements(const Certificate& certificate) {
  const double mean = certificate.kernel_error.has_value() ? certificate.kernel_error->mean : 0;
  if (const auto& interval = certificate.kernel_error_interval) {
    PHIMAP_RETURN_IF_ERROR(
        CheckNumber("the low end of the mean kernel error's interval", interval->low, 0));
    PHIMAP_RETURN_IF_ERROR(CheckNumber("the mean kernel error, which its interval contains", mean,
                                       interval->low * (1 - kRoundOff)));
    PHIMAP_RETURN_IF_ERROR(CheckNumber("the high end of the mean kernel error's interval",
                                       interval->high, mean * (1 - kRoundOff)));
  }
  if (const auto& bound = certificate.kernel_error_bound) {
    PHIMAP_RETURN_IF_ERROR(
        CheckCount("disjoint pairs", bound->pairs, certificate.held_out_rows / 2));
    PHIMAP_RETURN_IF_ERROR(CheckNumber("the kernel error of disjoint pairs", bound->largest, 0));
    PHIMAP_RETURN_IF_ERROR(
        CheckNumber("the share of pairs with a larger kernel error", bound->share, 0));
    PHIMAP_RETURN_IF_ERROR(
        CheckNumber("the share of pairs without a larger kernel error", 1 - bound->share, 0));
  }
  return absl::OkStatus();
}

absl::Status CheckResidualShare(const Certificate& certificate) {
  const std::optional<ResidualShare>& share = certificate.residual_share;
  if (!share.has_value()) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(CheckNumber("the median residual share", share->median, 0));
  PHIMAP_RETURN_IF_ERROR(
      CheckNumber("the 95 % quantile of the residual share", share->quantile_95, share->median));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("rows of the residual share", share->rows, certificate.held_out_rows));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("zero rows", share->zero_rows, certificate.held_out_rows - share->rows));
  return absl::OkStatus();
}

absl::Status CheckLandmarks(const Certificate& certificate) {
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("pivots", static_cast<int64_t>(certificate.pivots.size()), certificate.landmarks));
  for (const double pivot : certificate.pivots) {
    PHIMAP_RETURN_IF_ERROR(CheckNumber("a pivot", pivot, 0));
  }
  PHIMAP_RETURN_IF_ERROR(CheckCount("landmark rows",
                                    static_cast<int64_t>(certificate.landmark_rows.size()),
                                    certificate.landmarks));
  for (const int64_t row : certificate.landmark_rows) {
    PHIMAP_RETURN_IF_ERROR(CheckCount("a landmark's row", row, certificate.stream_rows - 1));
  }
  return absl::OkStatus();
}

// Refuses numbers that no build can have measured, because they would corrupt alerts and charts
// that compare certificates.
absl::Status CheckNumbers(const Certificate& certificate) {
  PHIMAP_RETURN_IF_ERROR(CheckCount("the stream's rows", certificate.stream_rows, kMaxCount));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("the pool's rows", certificate.pool_rows, certificate.stream_rows));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("held-out rows", certificate.held_out_rows, certificate.stream_rows));
  PHIMAP_RETURN_IF_ERROR(CheckCount("landmarks", certificate.landmarks, certificate.stream_rows));
  PHIMAP_RETURN_IF_ERROR(CheckCount("rank", certificate.rank.value_or(0), certificate.landmarks));
  PHIMAP_RETURN_IF_ERROR(CheckNumber("the tolerance", certificate.tolerance.value_or(0), 0));
  PHIMAP_RETURN_IF_ERROR(
      CheckNumber("the largest residual", certificate.largest_residual.value_or(0), 0));
  PHIMAP_RETURN_IF_ERROR(
      CheckNumber("the trace residual", certificate.trace_residual.value_or(0), -kRoundOff));
  PHIMAP_RETURN_IF_ERROR(CheckNumber("the held-out trace residual",
                                     certificate.held_out_trace_residual.value_or(0), -kRoundOff));
  PHIMAP_RETURN_IF_ERROR(CheckResidualShare(certificate));
  PHIMAP_RETURN_IF_ERROR(
      CheckNumber("the serving share", certificate.serving_share.value_or(0), 0));
  PHIMAP_RETURN_IF_ERROR(CheckCount("zero landmarks", certificate.zero_landmarks.value_or(0),
                                    certificate.landmarks - certificate.rank.value_or(0)));
  PHIMAP_RETURN_IF_ERROR(CheckError("kernel error", certificate.kernel_error));
  PHIMAP_RETURN_IF_ERROR(CheckPairStatements(certificate));
  PHIMAP_RETURN_IF_ERROR(CheckError("serving error", certificate.serving_error));
  return CheckLandmarks(certificate);
}

absl::Status CheckDriftReference(const Artifact& artifact, const Provenance& provenance) {
  if (artifact.drift_reference.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const DriftReference reference,
                          DecodeDriftReference(artifact.drift_reference));
  return CheckReferenceFits(reference, artifact.plan,
                            Residual::Of(artifact.plan, provenance).has_value());
}

// Checks that the head is one of this artifact's features, that its texts can be shown, and that
// its program loads. Moves the plan out of the artifact.
absl::Status CheckHead(absl::string_view bytes, std::shared_ptr<const Engine> engine,
                       Artifact& artifact, ReviewedArtifact& review) {
  if (artifact.head.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(Head head, DecodeHead(artifact.head));
  PHIMAP_ASSIGN_OR_RETURN(head.variance, DecodeVariance(artifact.head_variance));
  if (const absl::Status valid = head.Validate(engine->output_columns()); !valid.ok()) {
    return Refused(reason::kArtifactMalformed, absl::StrCat("its head: ", valid.message()));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::string digest, FeaturesDigest(bytes));
  if (head.features_digest != digest) {
    return Refused(reason::kArtifactMalformed,
                   absl::StrCat("its head was trained on features with the digest ",
                                head.features_digest, ", but its features have ", digest));
  }
  PHIMAP_RETURN_IF_ERROR(CheckLine("learner", head.learner_text));
  for (const std::string& name : head.classes) {
    PHIMAP_RETURN_IF_ERROR(CheckLine("classes", name));
  }
  TrainingReport report;
  if (!head.report.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(report, DecodeReport(head.report));
  }
  PHIMAP_RETURN_IF_ERROR(CheckLine("premise", report.premise));
  for (const std::string& note : report.notes) PHIMAP_RETURN_IF_ERROR(CheckLine("notes", note));
  for (const Baseline& baseline : report.baselines) {
    PHIMAP_RETURN_IF_ERROR(CheckLine("baselines", baseline.name));
  }
  if (report.choice.has_value()) {
    PHIMAP_RETURN_IF_ERROR(CheckLine("choice", report.choice->parameter));
    PHIMAP_RETURN_IF_ERROR(CheckLine("choice", report.choice->loss));
  }
  for (const TuningTrial& trial : report.trials) {
    for (const std::string* const text : {&trial.spec, &trial.kernel, &trial.learner}) {
      PHIMAP_RETURN_IF_ERROR(CheckLine("trials", *text));
    }
  }
  PHIMAP_RETURN_IF_ERROR(head.folded ? HeadProgram::Folded(std::move(artifact.plan), head).status()
                                     : HeadProgram::Unfolded(std::move(engine), head).status());
  review.head = std::make_shared<const HeadFacts>(FactsOf(head, !artifact.head_variance.empty()));
  return absl::OkStatus();
}

bool IsReadable(uint32_t code) {
  if (code == '\n') return true;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  // Marks, embeddings, overrides and isolates of the bidirectional algorithm.
  const bool direction = code == 0x61c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !direction && code <= 0x10ffff;
}

}  // namespace

absl::StatusOr<ReviewedArtifact> ReviewArtifact(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  if (const auto size = static_cast<int64_t>(artifact.certificate.size());
      size > kMaxReviewedCertificateBytes) {
    return Refused(reason::kCertificateTooLarge,
                   absl::StrCat("its certificate takes ", size, " bytes; at most ",
                                kMaxReviewedCertificateBytes, " are allowed"));
  }
  ReviewedArtifact review;
  PHIMAP_ASSIGN_OR_RETURN(review.certificate, DecodeCertificate(artifact.certificate));
  review.provenance = std::move(artifact.provenance);
  PHIMAP_RETURN_IF_ERROR(CheckTexts(review.provenance, review.certificate));
  PHIMAP_RETURN_IF_ERROR(CheckNumbers(review.certificate));
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const Engine> engine, Engine::Load(artifact.plan));
  PHIMAP_RETURN_IF_ERROR(CheckDriftReference(artifact, review.provenance));
  review.input_columns = artifact.plan.input_columns();
  review.output_columns = engine->output_columns();
  review.serving_type = engine->serving_type();
  if (review.certificate.self_check.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(const bool compared,
                            VerifySelfCheck(*engine, *review.certificate.self_check));
    review.reference_vectors =
        compared ? ReferenceVectors::kVerified : ReferenceVectors::kNotComparable;
  }
  PHIMAP_RETURN_IF_ERROR(CheckHead(bytes, engine, artifact, review));
  return review;
}

absl::Status DamageAsInput(const absl::Status& status, absl::string_view field) {
  if (!absl::IsDataLoss(status)) return status;
  const ErrorDetail detail = DetailOf(status).value_or(ErrorDetail());
  return MakeError(absl::StatusCode::kInvalidArgument, detail.reason, field, status.message(),
                   detail.metadata);
}

bool IsReadableText(absl::string_view text) {
  while (!text.empty()) {
    if (!IsReadable(TakeUtf8Character(text))) return false;
  }
  return true;
}

}  // namespace phimap
