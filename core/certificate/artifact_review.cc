#include "core/certificate/artifact_review.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/certificate/readable_text.h"
#include "core/certificate/self_check.h"
#include "core/plan/engine.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status Refused(absl::string_view reason, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason, "", absl::StrCat("artifact: ", what));
}

absl::Status CheckText(absl::string_view what, absl::string_view text) {
  if (IsReadableText(text)) return absl::OkStatus();
  return Refused("UNREADABLE_TEXT", absl::StrCat("the text of its ", what,
                                                 " is not UTF-8 without control characters"));
}

// One that stands on a line of its own: a line feed in it would make up further lines.
absl::Status CheckLine(absl::string_view what, absl::string_view text) {
  if (text.find('\n') == absl::string_view::npos) return CheckText(what, text);
  return Refused("UNREADABLE_TEXT", absl::StrCat("the text of its ", what, " is not one line"));
}

absl::Status CheckTexts(const Provenance& provenance, const Certificate& certificate) {
  PHIMAP_RETURN_IF_ERROR(CheckLine("mapping", provenance.mapping_text));
  PHIMAP_RETURN_IF_ERROR(CheckLine("kernel", provenance.kernel_text));
  PHIMAP_RETURN_IF_ERROR(CheckLine("policy", certificate.policy));
  PHIMAP_RETURN_IF_ERROR(CheckText("theorem", certificate.theorem));
  for (const std::string& warning : certificate.warnings) {
    PHIMAP_RETURN_IF_ERROR(CheckText("warnings", warning));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReviewedArtifact> ReviewArtifact(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  if (const auto size = static_cast<int64_t>(artifact.certificate.size());
      size > kMaxReviewedCertificateBytes) {
    return Refused("CERTIFICATE_TOO_LARGE",
                   absl::StrCat("its certificate takes ", size, " bytes; at most ",
                                kMaxReviewedCertificateBytes, " are allowed"));
  }
  ReviewedArtifact review;
  PHIMAP_ASSIGN_OR_RETURN(review.certificate, DecodeCertificate(artifact.certificate));
  review.provenance = std::move(artifact.provenance);
  PHIMAP_RETURN_IF_ERROR(CheckTexts(review.provenance, review.certificate));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Engine> engine, Engine::Load(artifact.plan));
  review.input_columns = engine->input_columns();
  review.output_columns = engine->output_columns();
  review.serving_type = engine->serving_type();
  if (review.certificate.self_check.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(const bool compared,
                            VerifySelfCheck(*engine, *review.certificate.self_check));
    review.golden_vectors = compared ? GoldenVectors::kVerified : GoldenVectors::kNotComparable;
  }
  return review;
}

}  // namespace phimap
