// Decides whether an artifact of unknown origin may be stored.
//
// The decoder (core/plan/artifact.h) already treats every artifact as hostile. The review also
// checks properties that our own artifacts always have: texts can be shown to users, the
// certificate is small and possible (consistent counts; errors are finite and not negative), the
// plan can be loaded and run, and the reference vectors match. It cannot verify the certificate's
// measurements, which were made on rows that are not available here.
#ifndef PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
#define PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"

namespace phimap {

// Maximum size of an accepted certificate. Ours stay under 1 MiB: 8,192 pivots, and reference
// vectors of at most 256 KiB or one row.
inline constexpr int64_t kMaxReviewedCertificateBytes = int64_t{2} << 20;

// Result of checking the reference vectors.
enum class ReferenceVectors {
  kVerified,
  // The artifact has none.
  kAbsent,
  // This machine has no fused multiply-add, so its bits differ from those of other machines.
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

// Reviews an artifact. DATA_LOSS if the artifact is damaged (with the byte offset), if its texts
// are unreadable, if its certificate is impossible or too large, or if its reference vectors do not
// match (with row and feature). UNIMPLEMENTED for parts that this version of phimap does not know.
// Also the errors of Engine::Load. Memory: the plan, decoded and packed. Cost: at most four rows
// through the engine. Throws std::bad_alloc.
absl::StatusOr<ReviewedArtifact> ReviewArtifact(absl::string_view bytes);

// Converts DATA_LOSS to INVALID_ARGUMENT about `field`, for an artifact that a caller sent, since
// no stored data is lost. Returns other errors unchanged.
absl::Status DamageAsInput(const absl::Status& status, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
