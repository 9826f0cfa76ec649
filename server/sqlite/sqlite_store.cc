#include "server/sqlite/sqlite_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/files/file_blobs.h"
#include "server/sqlite/sqlite_database.h"
#include "server/sqlite/store_directory.h"
#include "server/store/garbage_collector.h"
#include "server/store/sql_catalog.h"

namespace phimap {
namespace {

constexpr char kDatabaseName[] = "phimap.sqlite";

// Returns the directory that contains `path`.
std::string ParentOf(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

// Syncs the directory's own entry in its parent. The parent may be inaccessible, as /var/lib is for
// a hardened service.
absl::Status SyncEntryOf(const std::string& data_dir, FileSystem* file_system) {
  const absl::Status synced = file_system->SyncDir(ParentOf(data_dir));
  return absl::IsFailedPrecondition(synced) ? file_system->SyncFileSystem(data_dir) : synced;
}

absl::StatusOr<std::unique_ptr<FileLock>> LockDirectory(const std::string& data_dir,
                                                        FileSystem* file_system, FileBlobs& blobs) {
  PHIMAP_RETURN_IF_ERROR(file_system->CreateDir(data_dir));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                          file_system->Lock(absl::StrCat(data_dir, "/lock")));
  PHIMAP_RETURN_IF_ERROR(SyncEntryOf(data_dir, file_system));
  PHIMAP_RETURN_IF_ERROR(blobs.CreateDirectories());
  return lock;
}

absl::StatusOr<std::shared_ptr<SqlDatabase>> OpenDatabase(const SqliteStoreOptions& options,
                                                          FileSystem* file_system,
                                                          FileBlobs& blobs) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                          LockDirectory(options.data_dir, file_system, blobs));
  const std::string path = absl::StrCat(options.data_dir, "/", kDatabaseName);
  PHIMAP_RETURN_IF_ERROR(RefuseLostDatabase(path, &blobs, file_system));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, options.busy_timeout));
  database->Keep(std::move(lock));
  // Syncs the database's own directory entry; SQLite syncs the entries of its logs.
  PHIMAP_RETURN_IF_ERROR(file_system->SyncDir(options.data_dir));
  return std::shared_ptr<SqlDatabase>(std::move(database));
}

absl::StatusOr<StartupReport> Tidy(FileSystem* file_system, FileBlobs& blobs, Catalog& catalog) {
  StartupReport report;
  // Creates and removes a file, to check that the directory is writable, even on a full disk.
  const std::string probe = absl::StrCat(blobs.temporary_path(), "/writable");
  const absl::Status created = file_system->NewWritableFile(probe).status();
  // A start that crashed here may have left the file behind.
  if (!absl::IsAlreadyExists(created)) PHIMAP_RETURN_IF_ERROR(created);
  PHIMAP_RETURN_IF_ERROR(file_system->Remove(probe));
  const absl::StatusOr<int64_t> pruned = catalog.Prune();
  // The server can serve with a full disk. Expired builds are not shown in any case.
  if (absl::IsResourceExhausted(pruned.status())) return report;
  PHIMAP_RETURN_IF_ERROR(pruned.status());
  report.removed_builds = *pruned;
  return report;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const SqliteStoreOptions& options,
                                                               FileSystem* file_system) {
  const auto blobs = std::make_shared<FileBlobs>(options.data_dir, file_system);
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<SqlDatabase> database,
                          OpenDatabase(options, file_system, *blobs));
  const auto clock = std::make_shared<StoreClock>(options.steady);
  auto catalog = std::make_unique<SqlCatalog>(database, blobs, clock);
  PHIMAP_RETURN_IF_ERROR(ConfirmIdentity(blobs.get(), file_system, catalog.get()));
  PHIMAP_ASSIGN_OR_RETURN(const StartupReport report, Tidy(file_system, *blobs, *catalog));
  DiskReserve reserve(absl::StrCat(options.data_dir, "/reserve"), options.reserve_bytes,
                      file_system);
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(reserve), std::move(database),
                                                      std::move(catalog), blobs, clock, report));
}

absl::Status SqliteStore::DeleteVersion(absl::string_view mapping, int64_t number,
                                        Rollbacks rollbacks, absl::string_view operation_id) {
  return DeleteOnFullDisk(
      [&] { return CatalogStore::DeleteVersion(mapping, number, rollbacks, operation_id); });
}

absl::Status SqliteStore::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                        absl::string_view operation_id) {
  return DeleteOnFullDisk(
      [&] { return CatalogStore::DeleteMapping(mapping, occupied, operation_id); });
}

absl::StatusOr<std::vector<VersionName>> SqliteStore::DeleteExpired() {
  absl::StatusOr<std::vector<VersionName>> expired;
  PHIMAP_RETURN_IF_ERROR(DeleteOnFullDisk([&] {
    expired = CatalogStore::DeleteExpired();
    return expired.status();
  }));
  return expired;
}

absl::Status SqliteStore::DeleteOnFullDisk(absl::FunctionRef<absl::Status()> remove) {
  absl::Status removed = remove();
  if (!absl::IsResourceExhausted(removed) || !reserve_.GiveUp()) return removed;
  removed = remove();
  if (removed.ok()) {
    // The next collector finds artifacts that are not removed now.
    GarbageCollector(database_, blobs_, "a deletion on a full disk", clock_)
        .Run(absl::ZeroDuration())
        .status()
        .IgnoreError();
  }
  reserve_.Make();
  return removed;
}

}  // namespace phimap
