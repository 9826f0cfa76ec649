#include "server/mapping/artifact_import.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/artifact_review.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Field of the request that is given in errors about the artifact.
constexpr char kChunk[] = "chunk";
// Number of copies of the artifact in memory during an import, as for a build (memory_budget.cc):
// the bytes, the plan, and the packed plan.
constexpr int64_t kCopies = 3;

absl::Status TooLong(int64_t stated_bytes) {
  return MakeError(
      Code::kInvalidArgument, reason::kArtifactTooLong, "chunk",
      absl::StrCat("the artifact's header states ", stated_bytes, " bytes, but more were sent"),
      {{"limit", absl::StrCat(stated_bytes)}});
}

absl::Status CheckSha256(absl::string_view stated, absl::string_view bytes) {
  const std::string expected = absl::AsciiStrToLower(stated);
  if (!IsSha256Hex(expected)) {
    return MakeError(Code::kInvalidArgument, reason::kDigestInvalid, "digest",
                     absl::StrCat("expected 64 hexadecimal digits, got ", Quoted(stated)));
  }
  const std::string actual = Sha256Hex(bytes);
  if (actual == expected) return absl::OkStatus();
  return MakeError(Code::kDataLoss, reason::kDigestMismatch, "digest",
                   absl::StrCat("the ", bytes.size(), " bytes received have the SHA-256 ", actual,
                                "; send the artifact again"),
                   {{"expected", expected}, {"actual", actual}});
}

VersionRecord RecordOf(const std::string& mapping, const ReviewedArtifact& review) {
  VersionRecord record;
  record.mapping = mapping;
  record.input_columns = review.input_columns;
  record.output_columns = review.output_columns;
  record.serving_type = std::string(FloatTypeName(review.serving_type));
  record.spec_text = review.provenance.spec_text;
  record.kernel_text = review.provenance.kernel_text;
  return record;
}

}  // namespace

absl::Status ArtifactImport::LookAtHead() {
  const absl::StatusOr<int64_t> stated = ArtifactSizeInHead(bytes_);
  if (!stated.ok()) return DamageAsInput(stated.status(), kChunk);
  PHIMAP_ASSIGN_OR_RETURN(reserved_, memory_.Reserve(kCopies * *stated));
  stated_bytes_ = *stated;
  bytes_.reserve(static_cast<size_t>(stated_bytes_));
  return absl::OkStatus();
}

absl::Status ArtifactImport::Append(absl::string_view bytes) {
  const int64_t size = size_bytes() + static_cast<int64_t>(bytes.size());
  if (stated_bytes_ > 0 && size > stated_bytes_) return TooLong(stated_bytes_);
  bytes_.append(bytes.data(), bytes.size());
  if (stated_bytes_ > 0 || size < kArtifactHeadBytes) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(LookAtHead());
  return size <= stated_bytes_ ? absl::OkStatus() : TooLong(stated_bytes_);
}

absl::StatusOr<CertifiedVersion> ArtifactImport::Finish(absl::string_view digest, Store& store,
                                                        VersionRegistry& registry,
                                                        const ChangeOrigin& origin) {
  PHIMAP_RETURN_IF_ERROR(CheckSha256(digest, bytes_));
  absl::StatusOr<ReviewedArtifact> review = ReviewArtifact(bytes_);
  if (!review.ok()) return DamageAsInput(review.status(), kChunk);
  PHIMAP_ASSIGN_OR_RETURN(VersionRecord record,
                          store.Import(RecordOf(mapping_, *review), bytes_, origin));
  // The version is stored even if its name cannot be read now; the registry logs that error.
  registry.CatchUp().IgnoreError();
  return CertifiedVersion{std::move(record),
                          std::move(review->certificate),
                          review->provenance.standardize,
                          review->provenance.seed,
                          std::move(review->provenance.column_names),
                          std::move(review->head)};
}

}  // namespace phimap
