#include "server/admin/store_restore.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/admin/backup_manifest.h"
#include "server/admin/catalog_rows.h"
#include "server/files/file_blobs.h"
#include "server/sqlite/sqlite_database.h"
#include "server/store/catalog_tables.h"
#include "server/store/store_clock.h"

namespace phimap {
namespace {

// Maximum size of the backup's files that are read into memory. The rows of a catalog are small, so
// the real files are smaller.
constexpr int64_t kDatabaseLimitBytes = int64_t{64} << 30;

struct BackedUp {
  CatalogRows rows;
  // Artifacts of the backup, without those that were damaged when it was made.
  std::map<std::string, int64_t> artifacts;
};

absl::Status Cancelled(absl::string_view what_is_there) {
  return absl::CancelledError(absl::StrCat("the restore was cancelled; ", what_is_there));
}

absl::Status CopyFile(const std::string& from, const std::string& to, FileSystem* file_system) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string content,
                          file_system->ReadFile(from, kDatabaseLimitBytes));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          file_system->NewWritableFile(to));
  PHIMAP_RETURN_IF_ERROR(file->Append(content));
  PHIMAP_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// Reads the backup's tables from a copy: SQLite creates files next to a database even if it only
// reads it, and backups may be read-only.
absl::StatusOr<BackedUp> ReadBackup(const std::string& folder, FileSystem* file_system) {
  std::string copy = "/tmp/phimap-restore-XXXXXX";
  if (mkdtemp(copy.data()) == nullptr) return FileError(errno, "mkdtemp", copy);
  const std::string path = absl::StrCat(copy, "/", kDatabaseFile);
  const absl::Cleanup remove = [&] {
    for (const char* suffix : {"", "-wal", "-shm"}) unlink(absl::StrCat(path, suffix).c_str());
    rmdir(copy.c_str());
  };
  PHIMAP_RETURN_IF_ERROR(CopyFile(absl::StrCat(folder, "/", kDatabaseFile), path, file_system));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, kAdminBusyTimeout));
  BackedUp backup;
  PHIMAP_RETURN_IF_ERROR(database->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(backup.rows, ReadCatalogRows(session));
    PHIMAP_ASSIGN_OR_RETURN(backup.artifacts, NamedArtifacts(session));
    return absl::OkStatus();
  }));
  return backup;
}

// Removes from `backup` the artifacts that it was made without. Their versions are restored as
// damaged, and an import repairs them.
absl::Status LeaveOutDamaged(const std::string& folder, const BackupManifest& manifest,
                             FileSystem* file_system, BackedUp* backup) {
  if (!manifest.contains(std::string(kDamagedFile))) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(
      const std::string text,
      file_system->ReadFile(absl::StrCat(folder, "/", kDamagedFile), kDatabaseLimitBytes));
  for (const absl::string_view digest : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    backup->artifacts.erase(std::string(digest));
  }
  return absl::OkStatus();
}

// Checks that the manifest lists every artifact that a row refers to.
absl::Status CheckArtifacts(const BackedUp& backup, const BackupManifest& manifest) {
  for (const auto& [digest, size_bytes] : backup.artifacts) {
    const auto found = manifest.find(absl::StrCat("blobs/", digest.substr(0, 2), "/", digest));
    if (found != manifest.end() && found->second == digest) continue;
    return MakeError(
        absl::StatusCode::kDataLoss, "BACKUP_DAMAGED", "from",
        absl::StrCat("artifact ", digest,
                     " is not in the backup; nothing was restored: use another backup"),
        {{"digest", digest}});
  }
  return absl::OkStatus();
}

absl::Status CopyArtifacts(const BackedUp& backup, Blobs& from, Blobs& to,
                           const AdminProgress& progress) {
  int64_t done = 0;
  for (const auto& [digest, size_bytes] : backup.artifacts) {
    if (!progress(done++, static_cast<int64_t>(backup.artifacts.size()))) {
      return Cancelled("the partial copy is not a store: remove it before you begin again");
    }
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                            from.OpenReader(digest, size_bytes));
    PHIMAP_RETURN_IF_ERROR(to.WriteFrom(digest, *reader));
  }
  return absl::OkStatus();
}

absl::Status WriteRows(SqlDatabase& database, const BackedUp& backup) {
  const Operation operation{
      .id = NewOperationId(), .request = "restore", .what = "the backup was restored"};
  return database.Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(const bool empty, IsEmptyCatalog(session));
        if (!empty) {
          return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_NOT_EMPTY", "store",
                           "the database already has a store; choose an empty database");
        }
        PHIMAP_RETURN_IF_ERROR(WriteCatalogRows(session, backup.rows));
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, StoreClock().Now(session));
        PHIMAP_RETURN_IF_ERROR(CatalogTables(session).AddOperation(operation, "", now));
        // Counts the restore as a use of every version. Otherwise versions whose ttl ended since
        // the backup would expire at once, although they may be wanted.
        return session
            .Run("UPDATE versions SET expire_time_us = ttl_us + $1 WHERE ttl_us > 0",
                 {absl::ToUnixMicros(now)})
            .status();
      },
      [&](SqlSession& session) { return CatalogTables(session).HasOperation(operation.id); },
      operation.what);
}

// Puts the tables in place last, and atomically. Until then, a server reports that the database is
// lost.
absl::Status RestoreDirectory(const BackedUp& backup, Blobs& from, const std::string& directory,
                              FileSystem* file_system, const AdminProgress& progress) {
  PHIMAP_RETURN_IF_ERROR(file_system->CreateDir(directory));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                          file_system->Lock(absl::StrCat(directory, "/lock")));
  FileBlobs to(directory, file_system);
  PHIMAP_RETURN_IF_ERROR(to.CreateDirectories());
  PHIMAP_RETURN_IF_ERROR(to.WriteNamed("STORE", backup.rows.store_id));
  PHIMAP_RETURN_IF_ERROR(CopyArtifacts(backup, from, to, progress));
  const std::string path = absl::StrCat(directory, "/", kDatabaseFile);
  const std::string part = absl::StrCat(path, ".part");
  {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDatabase> database,
                            SqliteDatabase::Open(part, kAdminBusyTimeout));
    PHIMAP_RETURN_IF_ERROR(WriteRows(*database, backup));
    PHIMAP_RETURN_IF_ERROR(database->EmptyLog());
  }
  PHIMAP_RETURN_IF_ERROR(file_system->SyncFileSystem(directory));
  PHIMAP_RETURN_IF_ERROR(file_system->Rename(part, path));
  return file_system->SyncDir(directory);
}

absl::Status RestorePostgres(const BackedUp& backup, Blobs& from, const AdminStore& to,
                             const AdminProgress& progress) {
  PHIMAP_RETURN_IF_ERROR(CopyArtifacts(backup, from, *to.blobs, progress));
  return WriteRows(*to.database, backup);
}

absl::Status CheckEmptyDatabase(const AdminStore& store) {
  return store.database->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const bool empty, IsEmptyCatalog(session));
    if (empty) return absl::OkStatus();
    return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_NOT_EMPTY", "store",
                     absl::StrCat(store.place, " already has a store; choose an empty database"));
  });
}

}  // namespace

absl::StatusOr<BackupReport> Restore(const std::string& folder, const std::string& store,
                                     FileSystem* file_system, const AdminProgress& progress) {
  PHIMAP_ASSIGN_OR_RETURN(const BackupManifest manifest, ReadManifest(folder, file_system));
  AdminStore to;
  if (IsPostgres(store)) {
    PHIMAP_ASSIGN_OR_RETURN(to, OpenAdminStore(store));
    PHIMAP_RETURN_IF_ERROR(CheckEmptyDatabase(to));
  } else {
    PHIMAP_RETURN_IF_ERROR(CheckEmpty(store, "--store", file_system));
  }
  PHIMAP_RETURN_IF_ERROR(CheckBackup(folder, manifest, file_system, [&] {
    return progress(0, static_cast<int64_t>(manifest.size()));
  }));
  PHIMAP_ASSIGN_OR_RETURN(BackedUp backup, ReadBackup(folder, file_system));
  PHIMAP_RETURN_IF_ERROR(LeaveOutDamaged(folder, manifest, file_system, &backup));
  PHIMAP_RETURN_IF_ERROR(CheckArtifacts(backup, manifest));
  FileBlobs from(folder, file_system);
  PHIMAP_RETURN_IF_ERROR(IsPostgres(store)
                             ? RestorePostgres(backup, from, to, progress)
                             : RestoreDirectory(backup, from, store, file_system, progress));
  BackupReport report{.mappings = static_cast<int64_t>(backup.rows.tables[0].size()),
                      .versions = static_cast<int64_t>(backup.rows.tables[1].size()),
                      .aliases = static_cast<int64_t>(backup.rows.tables[2].size()),
                      .artifacts = static_cast<int64_t>(backup.artifacts.size()),
                      .revision = backup.rows.revision};
  for (const auto& [digest, size_bytes] : backup.artifacts) report.bytes += size_bytes;
  return report;
}

}  // namespace phimap
