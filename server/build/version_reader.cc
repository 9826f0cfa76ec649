#include "server/build/version_reader.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

// Certificates smaller than this are not charged to the memory budget, so that they can be read
// even while builds hold all of it.
constexpr int64_t kChargedBytes = int64_t{1} << 20;
// A certificate takes memory twice: for its bytes and for its decoded form.
constexpr int64_t kDecodedFactor = 2;

// Returns the error for a damaged artifact. Artifacts are checked when they are stored, so the file
// has changed since then.
absl::Status DamagedFile(const std::string& digest, const absl::Status& damage) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactDamaged, "",
                   absl::StrCat("artifact ", digest, ": ", damage.message(),
                                "; restore the file from a backup, or import the version again"),
                   {{"digest", digest}});
}

absl::StatusOr<ArtifactFacts> ReadFacts(Store& store, const VersionRecord& record,
                                        MemoryBudget* memory, MemoryBudget::Reservation& share) {
  absl::StatusOr<ArtifactFacts> facts = ReadArtifactFacts(
      record.artifact_size_bytes,
      [&](int64_t offset, int64_t bytes) {
        return store.ReadArtifactRange(record.digest, offset, bytes);
      },
      [&](int64_t bytes) -> absl::Status {
        if (memory == nullptr || bytes < kChargedBytes) return absl::OkStatus();
        PHIMAP_ASSIGN_OR_RETURN(share, memory->Reserve(kDecodedFactor * bytes));
        return absl::OkStatus();
      });
  const std::optional<ErrorDetail> detail = DetailOf(facts.status());
  const bool damaged = detail.has_value() && detail->reason == reason::kArtifactMalformed;
  return damaged ? DamagedFile(record.digest, facts.status()) : std::move(facts);
}

}  // namespace

absl::StatusOr<CertifiedVersion> ReadCertifiedVersion(Store& store, VersionRegistry& registry,
                                                      const Reference& reference,
                                                      MemoryBudget* memory) {
  CertifiedVersion version;
  PHIMAP_ASSIGN_OR_RETURN(version.record, LookUpVersion(store, reference));
  const VersionHandle live = registry.FindLive(reference.mapping, version.record.number);
  if (live) {
    PHIMAP_ASSIGN_OR_RETURN(version.certificate, DecodeCertificate(live.certificate()));
    version.standardize = live.standardize();
    version.seed = live.seed();
    version.column_names = live.columns().names();
    version.head = live.head_facts();
    return version;
  }
  // Held until the certificate is decoded.
  MemoryBudget::Reservation share;
  PHIMAP_ASSIGN_OR_RETURN(ArtifactFacts facts, ReadFacts(store, version.record, memory, share));
  PHIMAP_ASSIGN_OR_RETURN(version.certificate, DecodeCertificate(facts.certificate));
  version.standardize = facts.provenance.standardize;
  version.seed = facts.provenance.seed;
  version.column_names = std::move(facts.provenance.column_names);
  PHIMAP_ASSIGN_OR_RETURN(version.head, ReadHeadFacts(store, version.record));
  return version;
}

}  // namespace phimap
