// Decides whether an artifact of unknown origin may be stored.
//
// The decoder (core/plan/artifact.h) already treats every artifact as hostile. The review also
// checks properties that our own artifacts always have. Texts can be shown to users. The
// certificate is small, and its numbers are possible: counts are consistent, and errors are finite
// and not negative. The plan can be loaded and run. The reference vectors match. A head is one of
// this artifact's features, and its program can be loaded.
//
// The review cannot verify the certificate's measurements, because the rows on which they were made
// are not available here.
#ifndef PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
#define PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/head/head.h"
#include "core/plan/artifact.h"

namespace phimap {

// Maximum size of an accepted certificate. Certificates that phimap makes stay under 1 MiB: they
// have at most 8,192 pivots, and reference vectors of at most 256 KiB or one row.
inline constexpr int64_t kMaxReviewedCertificateBytes = int64_t{2} << 20;

// Result of checking the reference vectors.
enum class ReferenceVectors {
  kVerified,
  // The artifact has no reference vectors.
  kAbsent,
  // This machine has no fused multiply-add, so its features can differ in the last bits.
  kNotComparable,
};

struct ReviewedArtifact {
  Provenance provenance;
  Certificate certificate;
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  ReferenceVectors reference_vectors = ReferenceVectors::kAbsent;
  // Null for a version without a head.
  std::shared_ptr<const HeadFacts> head = nullptr;
};

// Reviews an artifact. Returns DATA_LOSS in these cases: the artifact is damaged (the message gives
// the byte offset), its texts are unreadable, its certificate is impossible or too large, or its
// reference vectors do not match (the message gives row and feature). Returns UNIMPLEMENTED for
// parts that this version of phimap does not know. Also returns the errors of Engine::Load. Memory:
// the plan, decoded and packed. Cost: at most four rows through the engine. Throws std::bad_alloc.
absl::StatusOr<ReviewedArtifact> ReviewArtifact(absl::string_view bytes);

// Converts DATA_LOSS to INVALID_ARGUMENT about `field`. For an artifact that a caller sent: if it
// is damaged, no stored data is lost. Returns other errors unchanged.
absl::Status DamageAsInput(const absl::Status& status, absl::string_view field);

// Decides which bytes may be shown to users as text, because texts from artifacts of unknown origin
// go into messages, logs and terminals.
//
// Returns whether `text` is UTF-8 (shortest forms, no surrogates, up to U+10FFFF) without control
// characters other than line feeds. C0 and C1 characters are rejected because they could move a
// terminal's cursor. Characters that change the direction of writing are rejected because the text
// would not be displayed as stored. Pure; linear time.
bool IsReadableText(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
