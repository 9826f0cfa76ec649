// Decides whether an artifact of unknown origin may be stored.
//
// The decoder (core/plan/artifact.h) already treats every artifact as hostile. The review checks
// properties that our own artifacts always have: all texts can be shown to people, the description
// is small and possible (consistent counts, finite errors that are not negative), the plan can be
// loaded and run, and the reference vectors match. It does not verify the certificate: the
// measurements were made elsewhere, on rows that are not available here.
#ifndef PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
#define PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"

namespace phimap {

// Largest certificate that is accepted. Our own stay under 1 MiB: 8,192 pivots, and reference
// vectors of 256 KiB or of one row.
inline constexpr int64_t kMaxReviewedCertificateBytes = int64_t{2} << 20;

// Result of the check of reference vectors.
enum class ReferenceVectors {
  kVerified,
  // The artifact has none.
  kAbsent,
  // This machine has no fused multiply-add, so its bits may differ.
  kNotComparable,
};

struct ReviewedArtifact {
  Provenance provenance;
  Certificate certificate;
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  ReferenceVectors reference_vectors = ReferenceVectors::kAbsent;
};

// DATA_LOSS if the artifact is damaged (byte offset), unreadable or too large, or if its reference
// vectors do not match (row and feature); UNIMPLEMENTED for parts that this release does not know;
// and the errors of Engine::Load. Memory: the plan, decoded and packed. Cost: at most four rows
// through the engine. Throws std::bad_alloc.
absl::StatusOr<ReviewedArtifact> ReviewArtifact(absl::string_view bytes);

// Converts DATA_LOSS to INVALID_ARGUMENT about `field`, for an artifact that a caller sent: nothing
// stored is lost. Returns other errors unchanged.
absl::Status DamageAsInput(const absl::Status& status, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
