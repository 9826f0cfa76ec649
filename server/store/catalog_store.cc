#include "server/store/catalog_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/sha256.h"

namespace phimap {

CatalogStore::CatalogStore(std::unique_ptr<Catalog> catalog, std::unique_ptr<Blobs> blobs,
                           Clock clock)
    : catalog_(std::move(catalog)), blobs_(std::move(blobs)), clock_(std::move(clock)) {}

void CatalogStore::Pin(const std::string& digest) {
  MutexLock lock(&mutex_);
  ++pins_[digest];
}

void CatalogStore::Unpin(const std::string& digest) {
  MutexLock lock(&mutex_);
  const auto pin = pins_.find(digest);
  PHIMAP_CHECK(pin != pins_.end());
  if (--pin->second == 0) pins_.erase(pin);
}

void CatalogStore::RemoveGarbage(const std::vector<std::string>& digests) {
  MutexLock lock(&mutex_);
  garbage_.insert(digests.begin(), digests.end());
  std::vector<std::string> gone;
  for (const std::string& digest : garbage_) {
    if (pins_.contains(digest)) continue;  // Its publisher decides.
    // Under the lock, so that nobody begins to publish it between the question and the deed.
    const absl::StatusOr<bool> referenced = catalog_->IsReferenced(digest);
    if (!referenced.ok()) break;  // The others could not be judged either.
    if (*referenced || blobs_->Remove(digest).ok()) gone.push_back(digest);
  }
  for (const std::string& digest : gone) garbage_.erase(digest);
}

absl::StatusOr<VersionRecord> CatalogStore::Publish(const PublishRequest& request,
                                                    absl::string_view artifact) {
  const std::string digest = Sha256Hex(artifact);
  const absl::Time now = clock_();
  RemoveGarbage();
  // Saves writing in vain; the transaction checks again.
  PHIMAP_RETURN_IF_ERROR(catalog_->CheckPublishable(request, now));
  return Add(digest, artifact, [&] {
    return catalog_->InsertVersion(request, digest, static_cast<int64_t>(artifact.size()), now);
  });
}

absl::StatusOr<VersionRecord> CatalogStore::Import(const VersionRecord& version,
                                                   absl::string_view artifact) {
  const std::string digest = Sha256Hex(artifact);
  const absl::Time now = clock_();
  RemoveGarbage();
  return Add(digest, artifact, [&] {
    return catalog_->ImportVersion(version, digest, static_cast<int64_t>(artifact.size()), now);
  });
}

absl::StatusOr<VersionRecord> CatalogStore::Add(const std::string& digest,
                                                absl::string_view artifact, Insert insert) {
  Pin(digest);
  const absl::Status written = blobs_->Write(digest, artifact);
  absl::StatusOr<VersionRecord> version = written.ok() ? insert() : written;
  Unpin(digest);
  if (!version.ok()) RemoveGarbage({digest});
  return version;
}

absl::Status CatalogStore::DeleteVersion(absl::string_view mapping, int64_t number,
                                         Rollbacks rollbacks) {
  std::vector<std::string> digests;
  const absl::Status removed = catalog_->DeleteVersion(mapping, number, rollbacks, &digests);
  // Whether nothing refers to them any more is found out there, also if the commit is in doubt now.
  RemoveGarbage(digests);
  return removed;
}

absl::Status CatalogStore::DeleteMapping(absl::string_view mapping) {
  std::vector<std::string> digests;
  const absl::Status removed = catalog_->DeleteMapping(mapping, &digests);
  RemoveGarbage(digests);
  return removed;
}

absl::StatusOr<AliasRecord> CatalogStore::SetAlias(absl::string_view mapping,
                                                   absl::string_view alias, int64_t version,
                                                   absl::string_view etag) {
  RemoveGarbage();
  return catalog_->SetAlias(mapping, alias, version, etag, clock_());
}

absl::Status CatalogStore::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                       absl::string_view etag) {
  RemoveGarbage();
  return catalog_->DeleteAlias(mapping, alias, etag);
}

absl::Status CatalogStore::RecordFailedBuild(const BuildRecord& record) {
  PHIMAP_CHECK(!record.error.ok());
  const absl::Time now = clock_();
  BuildRecord stored = record;
  if (stored.end_time == absl::Time()) stored.end_time = now;
  RemoveGarbage();
  return catalog_->InsertFailedBuild(stored, now);
}

absl::StatusOr<BuildRecord> CatalogStore::GetBuild(absl::string_view mapping,
                                                   absl::string_view build_id) {
  return catalog_->GetBuild(mapping, build_id, clock_());
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
