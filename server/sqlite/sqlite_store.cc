#include "server/sqlite/sqlite_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/files/file_blobs.h"
#include "server/sqlite/sqlite_database.h"
#include "server/sqlite/store_directory.h"
#include "server/store/sql_catalog.h"

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

// The directory's own entry. Its parent may be closed to us, as /var/lib of a hardened service.
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

absl::StatusOr<std::unique_ptr<SqlCatalog>> OpenCatalog(const SqliteStoreOptions& options,
                                                        FileSystem* file_system, FileBlobs& blobs) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                          LockDirectory(options.data_dir, file_system, blobs));
  const std::string path = absl::StrCat(options.data_dir, "/", kDatabaseName);
  PHIMAP_RETURN_IF_ERROR(RefuseLostDatabase(path, &blobs, file_system));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, options.busy_timeout));
  database->Keep(std::move(lock));
  // The database's own entry in the directory; SQLite syncs those of its logs.
  PHIMAP_RETURN_IF_ERROR(file_system->SyncDir(options.data_dir));
  auto catalog = std::make_unique<SqlCatalog>(std::move(database));
  PHIMAP_RETURN_IF_ERROR(ConfirmIdentity(&blobs, file_system, catalog.get()));
  return catalog;
}

absl::StatusOr<StartupReport> Tidy(absl::Time now, FileSystem* file_system, FileBlobs& blobs,
                                   Catalog& catalog) {
  StartupReport report;
  PHIMAP_ASSIGN_OR_RETURN(report.removed_temporary_files, blobs.RemoveTemporary());
  // A file that can be created and removed: the directory is writable, even on a full disk.
  const std::string probe = absl::StrCat(blobs.temporary_path(), "/writable");
  PHIMAP_RETURN_IF_ERROR(file_system->NewWritableFile(probe).status());
  PHIMAP_RETURN_IF_ERROR(file_system->Remove(probe));
  PHIMAP_ASSIGN_OR_RETURN(const absl::flat_hash_set<std::string> referenced,
                          catalog.ReferencedDigests());
  PHIMAP_ASSIGN_OR_RETURN(report.removed_blobs, blobs.RemoveUnreferenced(referenced));
  const absl::StatusOr<int64_t> pruned = catalog.PruneBuilds(now);
  // A full disk is no reason not to serve what is stored: expired builds are not shown in any case.
  if (absl::IsResourceExhausted(pruned.status())) return report;
  PHIMAP_RETURN_IF_ERROR(pruned.status());
  report.removed_builds = *pruned;
  return report;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const SqliteStoreOptions& options,
                                                               FileSystem* file_system) {
  auto blobs = std::make_unique<FileBlobs>(options.data_dir, file_system);
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqlCatalog> catalog,
                          OpenCatalog(options, file_system, *blobs));
  PHIMAP_ASSIGN_OR_RETURN(const StartupReport report,
                          Tidy(options.clock(), file_system, *blobs, *catalog));
  return std::unique_ptr<SqliteStore>(
      new SqliteStore(std::move(catalog), std::move(blobs), options.clock, report));
}

}  // namespace phimap
