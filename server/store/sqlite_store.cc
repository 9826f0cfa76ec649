#include "server/store/sqlite_store.h"

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
absl::Status CommitInDoubt(const absl::Status& cause, const PublishRequest& request) {
  return MakeError(
      absl::StatusCode::kUnavailable, "COMMIT_IN_DOUBT", "",
      absl::StrCat("whether build ", request.build_id, " of \"", request.version.mapping,
                   "\" was stored shows when the disk works again; ask for the build then: ",
                   cause.message()),
      {{"mapping", request.version.mapping}, {"build_id", request.build_id}}, 5000);
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

absl::Status SqliteStore::Pin(const PublishRequest& request, const std::string& digest,
                              absl::Time now) {
  MutexLock lock(&mutex_);
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  RemoveGarbage();
  // The transaction checks again; here it saves writing an artifact in vain.
  PHIMAP_RETURN_IF_ERROR(catalog_->CheckPublishable(request, now));
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
  const absl::Time now = options_.clock();
  PHIMAP_RETURN_IF_ERROR(Pin(request, digest, now));
  const absl::Status written = blobs_.Write(digest, artifact);

  MutexLock lock(&mutex_);
  absl::StatusOr<VersionRecord> version =
      written.ok() ? Commit(request, digest, static_cast<int64_t>(artifact.size()), now) : written;
  Unpin(digest);
  if (version.ok()) return version;
  garbage_.insert(digest);
  RemoveGarbage();
  return version;
}

absl::StatusOr<VersionRecord> SqliteStore::Commit(const PublishRequest& request,
                                                  const std::string& digest, int64_t size_bytes,
                                                  absl::Time now) {
  // Another publisher may have left its commit in doubt since Pin.
  PHIMAP_RETURN_IF_ERROR(catalog_->Settle());
  absl::StatusOr<VersionRecord> version = catalog_->InsertVersion(request, digest, size_bytes, now);
  if (!version.ok() && catalog_->in_doubt()) return CommitInDoubt(version.status(), request);
  return version;
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

absl::StatusOr<std::string> SqliteStore::ReadArtifact(absl::string_view digest) {
  std::optional<int64_t> size_bytes;
  {
    MutexLock lock(&mutex_);
    PHIMAP_ASSIGN_OR_RETURN(size_bytes, catalog_->ArtifactSizeBytes(digest));
  }
  if (!size_bytes.has_value()) {
    return MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND", "",
                     absl::StrCat("no version has an artifact with digest \"", digest, "\""),
                     {{"digest", std::string(digest)}});
  }
  return blobs_.Read(digest, *size_bytes);
}

}  // namespace phimap
