#include "server/store/catalog_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/plan/artifact.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/catalog_errors.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

// Maximum number of attempts to store a version. The second write makes the blob fresh, and garbage
// collection leaves fresh blobs alone; the third attempt is for clocks that differ.
constexpr int kAttempts = 3;

}  // namespace

CatalogStore::CatalogStore(std::unique_ptr<Catalog> catalog, std::shared_ptr<Blobs> blobs,
                           std::unique_ptr<BuildClaims> claims)
    : catalog_(std::move(catalog)), blobs_(std::move(blobs)), claims_(std::move(claims)) {}

absl::StatusOr<VersionRecord> CatalogStore::Publish(const PublishRequest& request,
                                                    absl::string_view artifact) {
  const std::string digest = Sha256Hex(artifact);
  PublishRequest formatted = request;
  formatted.version.artifact_format = ArtifactFormatOf(artifact);
  // This check avoids a useless write; the transaction checks again.
  PHIMAP_RETURN_IF_ERROR(catalog_->CheckPublishable(formatted));
  return Add(digest, artifact, [&] {
    return catalog_->InsertVersion(formatted, digest, static_cast<int64_t>(artifact.size()));
  });
}

absl::StatusOr<VersionRecord> CatalogStore::Import(const VersionRecord& version,
                                                   absl::string_view artifact) {
  const std::string digest = Sha256Hex(artifact);
  VersionRecord formatted = version;
  formatted.artifact_format = ArtifactFormatOf(artifact);
  return Add(digest, artifact, [&] {
    return catalog_->ImportVersion(formatted, digest, static_cast<int64_t>(artifact.size()));
  });
}

absl::StatusOr<VersionRecord> CatalogStore::Add(const std::string& digest,
                                                absl::string_view artifact, Insert insert) {
  for (int attempt = 1;; ++attempt) {
    const absl::Status written = blobs_->Write(digest, artifact);
    absl::StatusOr<VersionRecord> version = written.ok() ? insert() : written;
    if (attempt == kAttempts || !IsArtifactRemoved(version.status())) return version;
  }
}

absl::Status CatalogStore::DeleteVersion(absl::string_view mapping, int64_t number,
                                         Rollbacks rollbacks, absl::string_view operation_id) {
  return catalog_->DeleteVersion(mapping, number, rollbacks, operation_id);
}

absl::Status CatalogStore::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                         absl::string_view operation_id) {
  return catalog_->DeleteMapping(mapping, occupied, operation_id);
}

absl::StatusOr<VersionRecord> CatalogStore::KeepVersion(absl::string_view mapping, int64_t number,
                                                        absl::Duration ttl,
                                                        absl::string_view operation_id) {
  return catalog_->KeepVersion(mapping, number, ttl, operation_id);
}

absl::Status CatalogStore::RecordUses(const std::vector<VersionName>& used) {
  return catalog_->RecordUses(used);
}

absl::StatusOr<std::vector<VersionName>> CatalogStore::DeleteExpired() {
  return catalog_->DeleteExpired();
}

absl::StatusOr<AliasRecord> CatalogStore::SetAlias(absl::string_view mapping,
                                                   absl::string_view alias, int64_t version,
                                                   absl::string_view etag,
                                                   absl::string_view operation_id) {
  return catalog_->SetAlias(mapping, alias, version, etag, operation_id);
}

absl::Status CatalogStore::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                       absl::string_view etag, absl::string_view operation_id) {
  return catalog_->DeleteAlias(mapping, alias, etag, operation_id);
}

absl::Status CatalogStore::RecordFailedBuild(const BuildRecord& record) {
  PHIMAP_CHECK(!record.error.ok());
  return catalog_->InsertFailedBuild(record);
}

absl::StatusOr<BuildRecord> CatalogStore::GetBuild(absl::string_view mapping,
                                                   absl::string_view build_id) {
  return catalog_->GetBuild(mapping, build_id);
}

absl::StatusOr<bool> CatalogStore::IsInHistory(const Revision& revision) {
  return catalog_->IsInHistory(revision);
}

absl::StatusOr<NameChanges> CatalogStore::ChangesSince(const Revision& since) {
  return catalog_->ChangesSince(since);
}

absl::StatusOr<MappingRecord> CatalogStore::GetMapping(absl::string_view name) {
  return catalog_->GetMapping(name);
}

absl::StatusOr<std::vector<MappingRecord>> CatalogStore::ListMappings(absl::string_view after,
                                                                      int limit) {
  return catalog_->ListMappings(after, limit);
}

absl::StatusOr<VersionRecord> CatalogStore::GetVersion(absl::string_view mapping,
                                                       std::optional<int64_t> number) {
  return catalog_->GetVersion(mapping, number);
}

absl::StatusOr<std::vector<VersionRecord>> CatalogStore::ListVersions(absl::string_view mapping,
                                                                      std::optional<int64_t> before,
                                                                      int limit) {
  return catalog_->ListVersions(mapping, before, limit);
}

absl::StatusOr<VersionRecord> CatalogStore::GetAliasedVersion(absl::string_view mapping,
                                                              absl::string_view alias) {
  return catalog_->GetAliasedVersion(mapping, alias);
}

absl::StatusOr<VersionRecord> CatalogStore::GetVersionByDigest(absl::string_view mapping,
                                                               absl::string_view digest) {
  return catalog_->GetVersionByDigest(mapping, digest);
}

absl::StatusOr<int64_t> CatalogStore::ArtifactSizeBytes(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> size_bytes,
                          catalog_->ArtifactSizeBytes(digest));
  if (size_bytes.has_value()) return *size_bytes;
  return MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND", "",
                   absl::StrCat("no version has an artifact with digest \"", digest, "\""),
                   {{"digest", std::string(digest)}});
}

absl::Status CatalogStore::UnlessDeleted(absl::string_view digest, const absl::Status& error) {
  PHIMAP_RETURN_IF_ERROR(ArtifactSizeBytes(digest).status());
  return error;
}

absl::StatusOr<std::string> CatalogStore::ReadArtifact(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
  absl::StatusOr<std::string> artifact = blobs_->Read(digest, size_bytes);
  if (!artifact.ok()) return UnlessDeleted(digest, artifact.status());
  return artifact;
}

absl::StatusOr<std::string> CatalogStore::ReadArtifactOf(const VersionRecord& version) {
  absl::StatusOr<std::string> artifact = blobs_->Read(version.digest, version.artifact_size_bytes);
  if (!artifact.ok()) return UnlessDeleted(version.digest, artifact.status());
  return artifact;
}

absl::StatusOr<std::string> CatalogStore::ReadArtifactRange(absl::string_view digest,
                                                            int64_t offset, int64_t bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
  if (offset >= size_bytes) return std::string();
  absl::StatusOr<std::string> part =
      blobs_->ReadRange(digest, size_bytes, offset, std::min(bytes, size_bytes - offset));
  if (!part.ok()) return UnlessDeleted(digest, part.status());
  return part;
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> CatalogStore::OpenArtifact(
    absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
  absl::StatusOr<std::unique_ptr<ArtifactReader>> reader = blobs_->OpenReader(digest, size_bytes);
  if (!reader.ok()) return UnlessDeleted(digest, reader.status());
  return reader;
}

}  // namespace phimap
