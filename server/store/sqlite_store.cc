#include "server/store/sqlite_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/sha256.h"
#include "server/store/store_directory.h"

namespace phimap {
namespace {

constexpr char kDatabaseName[] = "phimap.sqlite";

// The directory that holds `path`.
std::string ParentOf(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

// The commit failed and could not be settled: it may come to light after a crash, complete with its
// artifact.
absl::Status CommitInDoubt(const absl::Status& cause, const std::string& what) {
  // With the facts of the cause, its path among them.
  const ErrorDetail detail = DetailOf(cause).value_or(ErrorDetail());
  return MakeError(
      absl::StatusCode::kUnavailable, "COMMIT_IN_DOUBT", "",
      absl::StrCat("whether ", what, " shows when the disk works again: ", cause.message()),
      detail.metadata, 5000);
}

}  // namespace

SqliteStore::SqliteStore(const SqliteStoreOptions& options, FileSystem* file_system)
    : options_(options), file_system_(file_system), blobs_(options.data_dir, file_system) {}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const SqliteStoreOptions& options,
                                                               FileSystem* file_system) {
  std::unique_ptr<SqliteStore> store(new SqliteStore(options, file_system));
  PHIMAP_RETURN_IF_ERROR(store->LockDirectory());
  PHIMAP_RETURN_IF_ERROR(store->OpenCatalog());
  PHIMAP_RETURN_IF_ERROR(store->Tidy());
  return store;
}

absl::Status SqliteStore::LockDirectory() {
  PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(options_.data_dir));
  PHIMAP_ASSIGN_OR_RETURN(directory_lock_,
                          file_system_->Lock(absl::StrCat(options_.data_dir, "/lock")));
  PHIMAP_RETURN_IF_ERROR(file_system_->SyncDir(ParentOf(options_.data_dir)));
  return blobs_.CreateDirectories();
}

absl::Status SqliteStore::OpenCatalog() {
  const std::string path = absl::StrCat(options_.data_dir, "/", kDatabaseName);
  PHIMAP_RETURN_IF_ERROR(RefuseLostDatabase(path, &blobs_, file_system_));
  MutexLock lock(&mutex_);
  PHIMAP_ASSIGN_OR_RETURN(catalog_, Catalog::Open(path, options_.busy_timeout));
  // The database's own entry in the directory; SQLite syncs those of its logs.
  PHIMAP_RETURN_IF_ERROR(file_system_->SyncDir(options_.data_dir));
  return ConfirmIdentity(&blobs_, file_system_, catalog_.get());
}

absl::Status SqliteStore::Tidy() {
  // A file that can be created and removed: the directory is writable, even on a full disk.
  const std::string probe = absl::StrCat(blobs_.temporary_path(), "/writable");
  absl::StatusOr<int64_t> removed = blobs_.RemoveTemporary();
  PHIMAP_RETURN_IF_ERROR(removed.status());
  startup_report_.removed_temporary_files = *removed;
  PHIMAP_RETURN_IF_ERROR(file_system_->NewWritableFile(probe).status());
  PHIMAP_RETURN_IF_ERROR(file_system_->Remove(probe));

  MutexLock lock(&mutex_);
  PHIMAP_ASSIGN_OR_RETURN(const absl::flat_hash_set<std::string> referenced,
                          catalog_->ReferencedDigests());
  PHIMAP_ASSIGN_OR_RETURN(startup_report_.removed_blobs, blobs_.RemoveUnreferenced(referenced));
  absl::StatusOr<int64_t> pruned = catalog_->PruneBuilds(options_.clock());
  // A full disk is no reason not to serve what is stored: expired builds are not shown in any case.
  if (absl::IsResourceExhausted(pruned.status())) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(pruned.status());
  startup_report_.removed_builds = *pruned;
  return absl::OkStatus();
}

absl::Status SqliteStore::Pin(const std::string& digest, const Check& check) {
  MutexLock lock(&mutex_);
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  RemoveGarbage();
  PHIMAP_RETURN_IF_ERROR(check(*catalog_));
  ++pins_[digest];
  return absl::OkStatus();
}

void SqliteStore::Unpin(const std::string& digest) {
  const auto pin = pins_.find(digest);
  PHIMAP_CHECK(pin != pins_.end());
  if (--pin->second == 0) pins_.erase(pin);
}

void SqliteStore::RemoveGarbage() {
  if (catalog_->in_doubt()) return;
  std::vector<std::string> gone;
  for (const std::string& digest : garbage_) {
    if (pins_.contains(digest)) continue;  // Its publisher decides.
    const absl::StatusOr<bool> referenced = catalog_->IsReferenced(digest);
    if (!referenced.ok()) continue;
    if (*referenced || blobs_.Remove(digest).ok()) gone.push_back(digest);
  }
  for (const std::string& digest : gone) garbage_.erase(digest);
}

absl::StatusOr<VersionRecord> SqliteStore::Publish(const PublishRequest& request,
                                                   absl::string_view artifact) {
  const std::string digest = Sha256Hex(artifact);
  const auto size_bytes = static_cast<int64_t>(artifact.size());
  const absl::Time now = options_.clock();
  // The transaction checks again.
  return Add(
      digest, artifact, [&](Catalog& catalog) { return catalog.CheckPublishable(request, now); },
      [&](Catalog& catalog) { return catalog.InsertVersion(request, digest, size_bytes, now); },
      absl::StrCat("build ", request.build_id, " of ", Quoted(request.version.mapping),
                   " was stored (ask for the build then)"));
}

absl::StatusOr<VersionRecord> SqliteStore::Import(const VersionRecord& version,
                                                  absl::string_view artifact) {
  const std::string digest = Sha256Hex(artifact);
  const auto size_bytes = static_cast<int64_t>(artifact.size());
  const absl::Time now = options_.clock();
  return Add(
      digest, artifact, [](Catalog&) { return absl::OkStatus(); },
      [&](Catalog& catalog) { return catalog.ImportVersion(version, digest, size_bytes, now); },
      absl::StrCat("the artifact was stored as a version of ", Quoted(version.mapping),
                   " (import it again then)"));
}

absl::StatusOr<VersionRecord> SqliteStore::Add(const std::string& digest,
                                               absl::string_view artifact, const Check& check,
                                               const Insert& insert, const std::string& what) {
  PHIMAP_RETURN_IF_ERROR(Pin(digest, check));
  const absl::Status written = blobs_.Write(digest, artifact);

  MutexLock lock(&mutex_);
  absl::StatusOr<VersionRecord> version = written.ok() ? Commit(insert, what) : written;
  Unpin(digest);
  if (version.ok()) return version;
  garbage_.insert(digest);
  RemoveGarbage();
  return version;
}

absl::StatusOr<VersionRecord> SqliteStore::Commit(const Insert& insert, const std::string& what) {
  // Another publisher may have left its commit in doubt since Pin.
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  absl::StatusOr<VersionRecord> version = insert(*catalog_);
  if (!version.ok() && catalog_->in_doubt()) return CommitInDoubt(version.status(), what);
  return version;
}

absl::Status SqliteStore::Delete(const Remove& remove, const std::string& what) {
  MutexLock lock(&mutex_);
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  std::vector<std::string> digests;
  const absl::Status removed = remove(*catalog_, &digests);
  // Whether nothing refers to them any more is found out there, also if the commit is in doubt now.
  garbage_.insert(digests.begin(), digests.end());
  RemoveGarbage();
  if (!removed.ok() && catalog_->in_doubt()) return CommitInDoubt(removed, what);
  return removed;
}

absl::Status SqliteStore::DeleteVersion(absl::string_view mapping, int64_t number,
                                        Rollbacks rollbacks) {
  return Delete(
      [&](Catalog& catalog, std::vector<std::string>* digests) {
        return catalog.DeleteVersion(mapping, number, rollbacks, digests);
      },
      absl::StrCat("version ", number, " of ", Quoted(mapping), " was deleted"));
}

absl::Status SqliteStore::DeleteMapping(absl::string_view mapping) {
  return Delete(
      [&](Catalog& catalog, std::vector<std::string>* digests) {
        return catalog.DeleteMapping(mapping, digests);
      },
      absl::StrCat("mapping ", Quoted(mapping), " was deleted"));
}

absl::StatusOr<AliasRecord> SqliteStore::SetAlias(absl::string_view mapping,
                                                  absl::string_view alias, int64_t version,
                                                  absl::string_view etag) {
  const absl::Time now = options_.clock();
  MutexLock lock(&mutex_);
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  RemoveGarbage();
  absl::StatusOr<AliasRecord> moved = catalog_->SetAlias(mapping, alias, version, etag, now);
  if (moved.ok() || !catalog_->in_doubt()) return moved;
  return CommitInDoubt(moved.status(), absl::StrCat(mapping, "@", alias, " was moved"));
}

absl::Status SqliteStore::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                      absl::string_view etag) {
  return Delete(
      [&](Catalog& catalog, std::vector<std::string>*) {
        return catalog.DeleteAlias(mapping, alias, etag);
      },
      absl::StrCat(mapping, "@", alias, " was deleted"));
}

absl::Status SqliteStore::RecordFailedBuild(const BuildRecord& record) {
  PHIMAP_CHECK(!record.error.ok());
  const absl::Time now = options_.clock();
  BuildRecord stored = record;
  if (stored.end_time == absl::Time()) stored.end_time = now;
  MutexLock lock(&mutex_);
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  RemoveGarbage();
  return catalog_->InsertFailedBuild(stored, now);
}

absl::StatusOr<BuildRecord> SqliteStore::GetBuild(absl::string_view mapping,
                                                  absl::string_view build_id) {
  const absl::Time now = options_.clock();
  MutexLock lock(&mutex_);
  return catalog_->GetBuild(mapping, build_id, now);
}

absl::StatusOr<MappingRecord> SqliteStore::GetMapping(absl::string_view name) {
  MutexLock lock(&mutex_);
  return catalog_->GetMapping(name);
}

absl::StatusOr<std::vector<MappingRecord>> SqliteStore::ListMappings(absl::string_view after,
                                                                     int limit) {
  MutexLock lock(&mutex_);
  return catalog_->ListMappings(after, limit);
}

absl::StatusOr<VersionRecord> SqliteStore::GetVersion(absl::string_view mapping,
                                                      std::optional<int64_t> number) {
  MutexLock lock(&mutex_);
  return catalog_->GetVersion(mapping, number);
}

absl::StatusOr<std::vector<VersionRecord>> SqliteStore::ListVersions(absl::string_view mapping,
                                                                     std::optional<int64_t> before,
                                                                     int limit) {
  MutexLock lock(&mutex_);
  return catalog_->ListVersions(mapping, before, limit);
}

absl::StatusOr<VersionRecord> SqliteStore::GetAliasedVersion(absl::string_view mapping,
                                                             absl::string_view alias) {
  MutexLock lock(&mutex_);
  return catalog_->GetAliasedVersion(mapping, alias);
}

absl::StatusOr<int64_t> SqliteStore::ArtifactSizeBytes(absl::string_view digest) {
  std::optional<int64_t> size_bytes;
  {
    MutexLock lock(&mutex_);
    PHIMAP_ASSIGN_OR_RETURN(size_bytes, catalog_->ArtifactSizeBytes(digest));
  }
  if (size_bytes.has_value()) return *size_bytes;
  return MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND", "",
                   absl::StrCat("no version has an artifact with digest \"", digest, "\""),
                   {{"digest", std::string(digest)}});
}

absl::Status SqliteStore::UnlessDeleted(absl::string_view digest, const absl::Status& error) {
  PHIMAP_RETURN_IF_ERROR(ArtifactSizeBytes(digest).status());
  return error;
}

absl::StatusOr<std::string> SqliteStore::ReadArtifact(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
  absl::StatusOr<std::string> artifact = blobs_.Read(digest, size_bytes);
  if (!artifact.ok()) return UnlessDeleted(digest, artifact.status());
  return artifact;
}

absl::StatusOr<std::string> SqliteStore::ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                           int64_t bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
  if (offset >= size_bytes) return std::string();
  absl::StatusOr<std::string> part =
      blobs_.ReadRange(digest, size_bytes, offset, std::min(bytes, size_bytes - offset));
  if (!part.ok()) return UnlessDeleted(digest, part.status());
  return part;
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> SqliteStore::OpenArtifact(
    absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
  absl::StatusOr<std::unique_ptr<ArtifactReader>> reader = blobs_.OpenReader(digest, size_bytes);
  if (!reader.ok()) return UnlessDeleted(digest, reader.status());
  return reader;
}

}  // namespace phimap
