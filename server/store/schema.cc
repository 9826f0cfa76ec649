#include "server/store/schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Times are microseconds since 1970. Every row of `versions` and its index on `digest` hold the
// digest twice, so that integrity_check notices a flipped bit before start-up could take the blob
// for unreferenced.
//
// `mappings.next_version` outlives the versions, which is why a number is never used twice.
// `builds` refers to no mapping: a failed first build leaves a record and no mapping. `aliases` is
// not used yet; it is here because its columns are settled, and a table added later would keep
// people from going back to this release.
constexpr char kCreateTables[] = R"sql(
CREATE TABLE store (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  store_id TEXT NOT NULL,
  settled_commits INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (1, lower(hex(randomblob(16))), 0);
CREATE TABLE mappings (
  name TEXT PRIMARY KEY NOT NULL,
  next_version INTEGER NOT NULL CHECK (next_version >= 1),
  create_time_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE versions (
  mapping TEXT NOT NULL REFERENCES mappings (name),
  number INTEGER NOT NULL CHECK (number >= 1),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  artifact_size_bytes INTEGER NOT NULL,
  create_time_us INTEGER NOT NULL,
  input_columns INTEGER NOT NULL,
  output_columns INTEGER NOT NULL,
  serving_type TEXT NOT NULL,
  mapping_text TEXT NOT NULL,
  kernel_text TEXT NOT NULL,
  PRIMARY KEY (mapping, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_by_digest ON versions (digest);
CREATE TABLE aliases (
  mapping TEXT NOT NULL,
  alias TEXT NOT NULL,
  version INTEGER NOT NULL,
  etag TEXT NOT NULL,
  PRIMARY KEY (mapping, alias),
  FOREIGN KEY (mapping, version) REFERENCES versions (mapping, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE builds (
  mapping TEXT NOT NULL,
  build_id TEXT NOT NULL,
  spec_digest TEXT NOT NULL,
  rows_received INTEGER NOT NULL,
  end_time_us INTEGER NOT NULL,
  version INTEGER NOT NULL,
  error_code INTEGER NOT NULL,
  error_message TEXT NOT NULL,
  error_detail TEXT,
  PRIMARY KEY (mapping, build_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX builds_by_end_time ON builds (end_time_us);
)sql";

// FULL: a commit is on disk when it returns. WAL: a commit is one fsync, and a backup that reads
// the file meanwhile does not make a publish wait.
constexpr char kPragmas[] =
    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;";

absl::Status CheckOrigin(SqliteDatabase* database) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t application_id,
                          database->QueryInt("PRAGMA application_id"));
  PHIMAP_ASSIGN_OR_RETURN(const int64_t version, database->QueryInt("PRAGMA user_version"));
  if (application_id != kApplicationId) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_A_STORE", "",
                     absl::StrCat(database->path(),
                                  " is a database of another program; choose another directory"),
                     {{"path", database->path()}});
  }
  if (version == kSchemaVersion) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "STORE_TOO_NEW", "",
      absl::StrCat(database->path(), " has schema version ", version, ", this server knows ",
                   kSchemaVersion, "; start the release that wrote it, or a later one"),
      {{"path", database->path()},
       {"expected", absl::StrCat(kSchemaVersion)},
       {"actual", absl::StrCat(version)}});
}

absl::Status CheckIntegrity(SqliteDatabase* database) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string finding,
                          database->QueryText("PRAGMA integrity_check(1)"));
  if (finding == "ok") return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, "DATABASE_DAMAGED", "",
                   absl::StrCat(database->path(), " is damaged: ", finding,
                                "; restore it from a backup; nothing in the data directory was "
                                "removed"),
                   {{"path", database->path()}});
}

}  // namespace

absl::Status PrepareSchema(SqliteDatabase* database) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t objects,
                          database->QueryInt("SELECT count(*) FROM sqlite_schema"));
  if (objects > 0) {
    PHIMAP_RETURN_IF_ERROR(CheckOrigin(database));
    PHIMAP_RETURN_IF_ERROR(CheckIntegrity(database));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::string mode, database->QueryText("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NO_WRITE_AHEAD_LOG", "",
                     absl::StrCat(database->path(),
                                  ": the file system offers no shared memory, "
                                  "journal mode is ",
                                  mode, "; use a local file system"),
                     {{"path", database->path()}});
  }
  PHIMAP_RETURN_IF_ERROR(database->Execute(kPragmas));
  if (objects > 0) return absl::OkStatus();
  // One transaction: after a crash the file is either empty or complete.
  const absl::Status created = database->Execute(
      absl::StrCat("BEGIN IMMEDIATE;", kCreateTables, "PRAGMA application_id = ", kApplicationId,
                   "; PRAGMA user_version = ", kSchemaVersion, "; COMMIT;"));
  if (!created.ok() && database->in_transaction()) database->Execute("ROLLBACK").IgnoreError();
  return created;
}

}  // namespace phimap
