// Whether an artifact from elsewhere may be taken in.
//
// The decoder (core/plan/artifact.h) already treats every artifact as hostile. This adds what an
// artifact of our own is known to be and one from elsewhere has to show: it says nothing that
// cannot be shown to people, what it says of itself is small and not impossible (counts within
// each other, errors finite and not negative), it can be loaded and run, and its golden vectors
// come out. It does not show that the certificate is true: that was measured
// elsewhere, on rows that are not here.
#ifndef PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
#define PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"

namespace phimap {

// Largest certificate that is taken in. Ours stay under 1 MiB: 8,192 pivots, and golden vectors of
// 256 KiB or of one row.
inline constexpr int64_t kMaxReviewedCertificateBytes = int64_t{2} << 20;

// What became of the golden vectors.
enum class GoldenVectors {
  kVerified,
  // The artifact has none.
  kAbsent,
  // This machine has no fused multiply-add: its bits are of another class.
  kNotComparable,
};

struct ReviewedArtifact {
  Provenance provenance;
  Certificate certificate;
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  GoldenVectors golden_vectors = GoldenVectors::kAbsent;
};

// DATA_LOSS for what is damaged (byte offset), unreadable, too large, or whose golden vectors do
// not come out (row and feature); UNIMPLEMENTED for what this build does not know; and the errors
// of Engine::Load. Memory: the plan, decoded and packed. Cost: four rows through the engine at
// most. Throws std::bad_alloc.
absl::StatusOr<ReviewedArtifact> ReviewArtifact(absl::string_view bytes);

// Of an artifact that a caller brought, DATA_LOSS as what it is there: INVALID_ARGUMENT about
// `field`, since nothing of ours is lost. Other errors as they are.
absl::Status DamageAsInput(const absl::Status& status, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_ARTIFACT_REVIEW_H_
