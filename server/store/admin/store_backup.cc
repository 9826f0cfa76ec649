#include "server/store/admin/store_backup.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/thread/steady_time.h"
#include "server/store/admin/backup_manifest.h"
#include "server/store/catalog_tables.h"
#include "server/store/files/file_blobs.h"
#include "server/store/sql_database.h"
#include "server/store/sqlite/sqlite_database.h"
#include "server/store/store_clock.h"

namespace phimap {
namespace {

// The contents of a catalog as rows. Every database has the same tables, so a copy from one can be
// written to any other. The rows that are copied: names, versions, aliases, ended builds,
// operations and the audit. The current activity of a fleet (leases, claims, holds, servers) is not
// copied, and neither are the ids of changes: what is written gets an id of its own, so that a copy
// is known as another history.
struct CatalogRows {
  std::string store_id;
  int64_t revision = 0;
  // Rows of the tables and columns of CopiedTables(), in the same order.
  std::vector<SqlRows> tables;
};

struct CopiedTable {
  absl::string_view name;
  std::vector<absl::string_view> columns;
};

absl::StatusOr<SqlRows> ReadTable(SqlSession& session, const CopiedTable& table) {
  return session.Run(absl::StrCat("SELECT ", absl::StrJoin(table.columns, ", "), " FROM ",
                                  table.name, " ORDER BY ", table.columns[0], ", ",
                                  table.columns[1]));
}

SqlValue ValueIn(const SqlRows& rows, size_t row, size_t column) {
  if (rows.IsNull(row, column)) return std::monostate();
  if (rows.IsInt(row, column)) return rows.Int(row, column);
  return absl::string_view(rows.Text(row, column));
}

absl::Status WriteTable(SqlSession& session, const CopiedTable& table, const SqlRows& rows) {
  std::vector<std::string> places;
  for (size_t i = 1; i <= table.columns.size(); ++i) places.push_back(absl::StrCat("$", i));
  const std::string statement =
      absl::StrCat("INSERT INTO ", table.name, " (", absl::StrJoin(table.columns, ", "),
                   ") VALUES (", absl::StrJoin(places, ", "), ")");
  std::vector<SqlValue> values(table.columns.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < values.size(); ++column) {
      values[column] = ValueIn(rows, row, column);
    }
    PHIMAP_RETURN_IF_ERROR(session.Run(statement, values).status());
  }
  return absl::OkStatus();
}

// Returns the copied tables, in an order in which no row refers to a later one.
const std::vector<CopiedTable>& CopiedTables() {
  static const auto* const tables = new std::vector<CopiedTable>{
      {"mappings", {"name", "next_version", "create_time_us", "deleted", "revision"}},
      {"versions",
       {"mapping", "number", "digest", "artifact_size_bytes", "create_time_us", "input_columns",
        "output_columns", "serving_type", "mapping_text", "kernel_text", "imported", "ttl_us",
        "expire_time_us", "made_by"}},
      {"aliases",
       {"mapping", "alias", "version", "etag", "previous_version", "move_time_us", "moved_by"}},
      {"builds",
       {"mapping", "build_id", "spec_digest", "rows_received", "end_time_us", "version",
        "error_code", "error_message", "error_detail"}},
      {"operations", {"operation_id", "request", "outcome", "end_time_us"}},
      {"audit",
       {"number", "time_us", "method", "principal", "peer", "request_id", "mapping", "alias",
        "build_id", "previous_version", "previous_digest", "version", "digest", "outcome", "reason",
        "detail"}}};
  return *tables;
}

// The number of mappings that are not deleted; the names of deleted ones are kept.
int64_t LivingMappings(const CatalogRows& rows) {
  constexpr size_t kDeleted = 3;  // the column of CopiedTables
  int64_t count = 0;
  for (size_t i = 0; i < rows.tables[0].size(); ++i) {
    if (rows.tables[0].Int(i, kDeleted) == 0) ++count;
  }
  return count;
}

absl::StatusOr<CatalogRows> ReadCatalogRows(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows store, session.Run("SELECT store_id, revision FROM store"));
  if (store.size() != 1) {
    return MakeError(absl::StatusCode::kDataLoss, reason::kDatabaseDamaged, "store",
                     "the table store lacks its row; restore the database from a backup");
  }
  CatalogRows rows{store.Text(0, 0), store.Int(0, 1), {}};
  for (const CopiedTable& table : CopiedTables()) {
    PHIMAP_ASSIGN_OR_RETURN(SqlRows read, ReadTable(session, table));
    rows.tables.push_back(std::move(read));
  }
  return rows;
}

// Inserts the rows. The tables must be empty except for the row of `store`, which is overwritten.
absl::Status WriteCatalogRows(SqlSession& session, const CatalogRows& rows) {
  PHIMAP_RETURN_IF_ERROR(session
                             .Run("UPDATE store SET store_id = $1, revision = $2",
                                  {absl::string_view(rows.store_id), rows.revision})
                             .status());
  for (size_t i = 0; i < rows.tables.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(WriteTable(session, CopiedTables()[i], rows.tables[i]));
  }
  return session.Run("UPDATE store SET audited = (SELECT coalesce(max(number), 0) FROM audit)")
      .status();
}

// Returns whether nothing was ever stored in the catalog.
absl::StatusOr<bool> IsEmptyCatalog(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows found,
      session.Run("SELECT 1 FROM store WHERE revision > 0 OR EXISTS (SELECT 1 FROM mappings) "
                  "OR EXISTS (SELECT 1 FROM builds)"));
  return found.empty();
}

// Returns the digests of the artifacts that versions refer to, with their sizes in bytes.
absl::StatusOr<std::map<std::string, int64_t>> NamedArtifacts(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session.Run("SELECT DISTINCT digest, artifact_size_bytes FROM versions"));
  std::map<std::string, int64_t> artifacts;
  for (size_t row = 0; row < rows.size(); ++row) artifacts[rows.Text(row, 0)] = rows.Int(row, 1);
  return artifacts;
}

constexpr absl::Duration kRenewEvery = absl::Minutes(1);

std::string RandomId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

// Prevents garbage collection of a store while it is copied. A hold is in force from Take until it
// is destroyed, as long as it is renewed. The hold of a program that was killed expires by itself.
// Not thread-safe. All methods return errors of the database.
class StoreHold {
 public:
  static constexpr absl::Duration kLifetime = absl::Minutes(10);

  // Takes a hold. `holder` describes this program, for people.
  static absl::StatusOr<std::unique_ptr<StoreHold>> Take(std::shared_ptr<SqlDatabase> database,
                                                         std::string holder);
  ~StoreHold();
  StoreHold(const StoreHold&) = delete;
  StoreHold& operator=(const StoreHold&) = delete;

  // Renews the hold. Must be called at least once within every kLifetime; writes at most once a
  // minute. FAILED_PRECONDITION (HOLD_LOST) if the hold has already expired: the copy may be
  // incomplete.
  absl::Status Renew();

 private:
  StoreHold(std::shared_ptr<SqlDatabase> database, std::string id, std::string holder)
      : database_(std::move(database)), id_(std::move(id)), holder_(std::move(holder)) {}

  const std::shared_ptr<SqlDatabase> database_;
  const std::string id_;
  const std::string holder_;
  absl::Time renewed_ = SteadyNow();
};

absl::StatusOr<std::unique_ptr<StoreHold>> StoreHold::Take(std::shared_ptr<SqlDatabase> database,
                                                           std::string holder) {
  auto hold = absl::WrapUnique(new StoreHold(std::move(database), RandomId(), std::move(holder)));
  // Uses Write, not WriteAside: the transactions that collect garbage are also Writes, which run
  // one after another, and each of them checks for holds.
  PHIMAP_RETURN_IF_ERROR(hold->database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(
            session.Run("DELETE FROM holds WHERE end_time_us <= (SELECT now_us FROM clock)")
                .status());
        return session
            .Run(
                "INSERT INTO holds (hold_id, holder, end_time_us) "
                "SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), now_us + $3 FROM clock",
                {absl::string_view(hold->id_), absl::string_view(hold->holder_),
                 absl::ToInt64Microseconds(kLifetime)})
            .status();
      },
      [&](SqlSession& session) -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows found,
            session.Run("SELECT 1 FROM holds WHERE hold_id = $1", {absl::string_view(hold->id_)}));
        return !found.empty();
      },
      "a hold was taken"));
  return hold;
}

StoreHold::~StoreHold() {
  database_
      ->WriteAside([this](SqlSession& session) {
        return session.Run("DELETE FROM holds WHERE hold_id = $1", {absl::string_view(id_)})
            .status();
      })
      .IgnoreError();  // If this fails, the hold expires by itself.
}

absl::Status StoreHold::Renew() {
  if (SteadyNow() - renewed_ < kRenewEvery) return absl::OkStatus();
  bool held = false;
  PHIMAP_RETURN_IF_ERROR(database_->WriteAside([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows renewed,
        session.Run("UPDATE holds SET end_time_us = (SELECT now_us FROM clock) + $1 "
                    "WHERE hold_id = $2 AND end_time_us > (SELECT now_us FROM clock) "
                    "RETURNING hold_id",
                    {absl::ToInt64Microseconds(kLifetime), absl::string_view(id_)}));
    held = !renewed.empty();
    return absl::OkStatus();
  }));
  if (!held) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kHoldLost, "store",
                     "this program was stopped for so long that garbage may have been collected "
                     "meanwhile; begin again");
  }
  renewed_ = SteadyNow();
  return absl::OkStatus();
}

constexpr char kAliasesFile[] = "aliases.txt";

std::string BlobName(absl::string_view digest) {
  return absl::StrCat("blobs/", digest.substr(0, 2), "/", digest);
}

// Returns a line per alias with NAME@ALIAS, version number and digest, for people and for restoring
// by hand.
std::string AliasesText(const CatalogRows& rows) {
  const SqlRows& versions = rows.tables[1];
  const SqlRows& aliases = rows.tables[2];
  std::map<std::pair<std::string, int64_t>, std::string> digests;
  for (size_t i = 0; i < versions.size(); ++i) {
    digests[{versions.Text(i, 0), versions.Int(i, 1)}] = versions.Text(i, 2);
  }
  std::string text;
  for (size_t i = 0; i < aliases.size(); ++i) {
    absl::StrAppend(&text, aliases.Text(i, 0), "@", aliases.Text(i, 1), "\t", aliases.Int(i, 2),
                    "\t", digests[{aliases.Text(i, 0), aliases.Int(i, 2)}], "\n");
  }
  return text;
}

absl::Status WriteText(const std::string& path, absl::string_view text, FileSystem* file_system) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          file_system->NewWritableFile(path));
  PHIMAP_RETURN_IF_ERROR(file->Append(text));
  PHIMAP_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status WriteDatabase(const std::string& path, const CatalogRows& rows) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, kAdminBusyTimeout));
  PHIMAP_RETURN_IF_ERROR(
      database->Write([&](SqlSession& session) { return WriteCatalogRows(session, rows); },
                      [](SqlSession&) { return false; }, "the backup's tables were written"));
  return database->EmptyLog();
}

absl::Status SomeDamaged(const std::vector<std::string>& messages) {
  return MakeError(
      absl::StatusCode::kDataLoss, reason::kArtifactDamaged, "store",
      absl::StrCat(
          CountOf(messages.size(), "artifact"),
          " could not be copied, so the backup is incomplete: ", absl::StrJoin(messages, "; "),
          "; repair them (`phimapd admin check` lists the versions that use them), or "
          "make a backup "
          "without them with --skip-damaged"));
}

class Backup {
 public:
  Backup(const AdminStore& from, std::string folder, FileSystem* file_system,
         const AdminProgress& progress, bool skip_damaged)
      : from_(from),
        folder_(std::move(folder)),
        file_system_(file_system),
        progress_(progress),
        skip_damaged_(skip_damaged),
        to_(folder_, file_system) {}

  absl::StatusOr<BackupReport> Run(StoreHold& hold) {
    CatalogRows rows;
    std::map<std::string, int64_t> artifacts;
    PHIMAP_RETURN_IF_ERROR(from_.database->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(rows, ReadCatalogRows(session));
      PHIMAP_ASSIGN_OR_RETURN(artifacts, NamedArtifacts(session));
      return absl::OkStatus();
    }));
    PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(folder_));
    PHIMAP_RETURN_IF_ERROR(to_.CreateDirectories());
    PHIMAP_RETURN_IF_ERROR(CopyArtifacts(artifacts, hold));
    PHIMAP_RETURN_IF_ERROR(WriteRest(rows));
    report_.mappings = LivingMappings(rows);
    report_.versions = static_cast<int64_t>(rows.tables[1].size());
    report_.aliases = static_cast<int64_t>(rows.tables[2].size());
    report_.revision = rows.revision;
    return report_;
  }

 private:
  absl::Status CopyArtifacts(const std::map<std::string, int64_t>& artifacts, StoreHold& hold) {
    for (const auto& [digest, size_bytes] : artifacts) {
      if (!progress_(report_.artifacts, static_cast<int64_t>(artifacts.size()))) {
        return absl::CancelledError(absl::StrCat("the backup was cancelled; ", folder_,
                                                 " has no MANIFEST and is not a backup"));
      }
      PHIMAP_RETURN_IF_ERROR(hold.Renew());
      const absl::Status copied = CopyArtifact(digest, size_bytes);
      if (absl::IsDataLoss(copied)) {
        report_.damaged.push_back(std::string(copied.message()));
        absl::StrAppend(&damaged_text_, digest, "\n");
        continue;
      }
      PHIMAP_RETURN_IF_ERROR(copied);
      manifest_[BlobName(digest)] = digest;
      ++report_.artifacts;
      report_.bytes += size_bytes;
    }
    if (report_.damaged.empty() || skip_damaged_) return absl::OkStatus();
    return SomeDamaged(report_.damaged);
  }

  absl::Status CopyArtifact(const std::string& digest, int64_t size_bytes) {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                            from_.blobs->OpenReader(digest, size_bytes));
    return to_.WriteFrom(digest, *reader);
  }

  absl::Status WriteRest(const CatalogRows& rows) {
    PHIMAP_RETURN_IF_ERROR(to_.WriteNamed("STORE", rows.store_id));
    PHIMAP_RETURN_IF_ERROR(WriteText(Path(kAliasesFile), AliasesText(rows), file_system_));
    if (!damaged_text_.empty()) {
      const std::string path = Path(kDamagedFile);
      PHIMAP_RETURN_IF_ERROR(WriteText(path, damaged_text_, file_system_));
      PHIMAP_ASSIGN_OR_RETURN(manifest_[std::string(kDamagedFile)], FileDigest(path, file_system_));
    }
    PHIMAP_RETURN_IF_ERROR(WriteDatabase(Path(kDatabaseFile), rows));
    PHIMAP_RETURN_IF_ERROR(file_system_->SyncFileSystem(folder_));
    for (const absl::string_view name :
         {absl::string_view("blobs/STORE"), absl::string_view(kAliasesFile), kDatabaseFile}) {
      PHIMAP_ASSIGN_OR_RETURN(manifest_[std::string(name)], FileDigest(Path(name), file_system_));
    }
    return WriteManifest(folder_, manifest_, file_system_);
  }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

  const AdminStore& from_;
  const std::string folder_;
  FileSystem* const file_system_;
  const AdminProgress& progress_;
  const bool skip_damaged_;
  FileBlobs to_;
  BackupManifest manifest_;
  // Digests of the artifacts that could not be copied, one per line.
  std::string damaged_text_;
  BackupReport report_;
};

}  // namespace

absl::Status CheckEmpty(const std::string& folder, absl::string_view field,
                        FileSystem* file_system) {
  const absl::StatusOr<std::vector<std::string>> names = file_system->List(folder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(names.status());
  if (names->empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kStoreNotEmpty, field,
      absl::StrCat("expected a folder that is missing or empty, but ", folder, " has ",
                   names->front(),
                   names->size() > 1 ? absl::StrCat(" and ", names->size() - 1, " more") : "",
                   "; choose another folder, or move these files away"),
      {{"path", absl::StrCat(folder, "/", names->front())}});
}

absl::StatusOr<BackupReport> BackUp(const AdminStore& from, const std::string& folder,
                                    const std::string& holder, FileSystem* file_system,
                                    const AdminProgress& progress, bool skip_damaged) {
  PHIMAP_RETURN_IF_ERROR(CheckEmpty(folder, "--to", file_system));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreHold> hold,
                          StoreHold::Take(from.database, holder));
  return Backup(from, folder, file_system, progress, skip_damaged).Run(*hold);
}

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
        absl::StatusCode::kDataLoss, reason::kBackupDamaged, "from",
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
          return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStoreNotEmpty, "store",
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
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStoreNotEmpty, "store",
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
  BackupReport report{.mappings = LivingMappings(backup.rows),
                      .versions = static_cast<int64_t>(backup.rows.tables[1].size()),
                      .aliases = static_cast<int64_t>(backup.rows.tables[2].size()),
                      .artifacts = static_cast<int64_t>(backup.artifacts.size()),
                      .revision = backup.rows.revision};
  for (const auto& [digest, size_bytes] : backup.artifacts) report.bytes += size_bytes;
  return report;
}

}  // namespace phimap
