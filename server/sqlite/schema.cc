#include "server/sqlite/schema.h"

#include <iterator>
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
// `mappings.next_version` outlives the versions, which is why a number is never used twice; so does
// the row of a mapping that was deleted. `builds` refers to no mapping: a failed first build leaves
// a record and no mapping. `aliases.previous_version` refers to no version: that one may be
// deleted.
//
// `store.revision` counts the changes of names, and `mappings.revision` is that of the mapping's
// last one; so changes since a revision are found by comparing.
//
// `unreferenced` has artifacts that no version names, and since when; `holds` are programs that
// need all artifacts kept, such as a backup in progress. `leases` say which server does work that
// only one should do, such as collecting garbage. `claims` are builds under way, on any server; a
// claim's epoch increases with each taker, and publishing checks it. `servers` are those that work
// with this store, and the newest formats they read.
//
// `versions.ttl_us` is how long a version lives after its last use, and `expire_time_us` when that
// is over as the last use was recorded; both are 0 of a version that lives for ever.
//
// `history` and `clock` are what statements for all databases ask: where the catalog stands, and
// what time it is.
//
// The columns stand in the order in which migrations added them: an old file and a new one have the
// same tables.
constexpr char kCreateTables[] = R"sql(
CREATE TABLE store (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  store_id TEXT NOT NULL,
  settled_commits INTEGER NOT NULL,
  epoch TEXT NOT NULL DEFAULT '',
  revision INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO store VALUES (1, lower(hex(randomblob(16))), 0, lower(hex(randomblob(8))), 0);
CREATE TABLE mappings (
  name TEXT PRIMARY KEY NOT NULL,
  next_version INTEGER NOT NULL CHECK (next_version >= 1),
  create_time_us INTEGER NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
  revision INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX mappings_by_revision ON mappings (revision);
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
  imported INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1)),
  PRIMARY KEY (mapping, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_by_digest ON versions (digest);
CREATE TABLE aliases (
  mapping TEXT NOT NULL,
  alias TEXT NOT NULL,
  version INTEGER NOT NULL,
  etag TEXT NOT NULL,
  previous_version INTEGER NOT NULL DEFAULT 0,
  move_time_us INTEGER NOT NULL DEFAULT 0,
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

// Tables added by schema version 4.
constexpr char kFleetTables[] = R"sql(
CREATE TABLE unreferenced (
  digest TEXT PRIMARY KEY NOT NULL CHECK (length(digest) = 64),
  since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE holds (
  hold_id TEXT PRIMARY KEY NOT NULL,
  holder TEXT NOT NULL,
  end_time_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
  lease TEXT PRIMARY KEY NOT NULL,
  holder TEXT NOT NULL,
  end_time_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE claims (
  mapping TEXT NOT NULL,
  build_id TEXT NOT NULL,
  spec_digest TEXT NOT NULL,
  server_id TEXT NOT NULL,
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  start_time_us INTEGER NOT NULL,
  lease_end_us INTEGER NOT NULL,
  state INTEGER NOT NULL,
  rows_received INTEGER NOT NULL,
  phase TEXT NOT NULL,
  fraction_ppm INTEGER NOT NULL,
  followed INTEGER NOT NULL CHECK (followed IN (0, 1)),
  cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1)),
  PRIMARY KEY (mapping, build_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE servers (
  server_id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  release TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  artifact_format INTEGER NOT NULL,
  arithmetic INTEGER NOT NULL,
  start_time_us INTEGER NOT NULL,
  seen_time_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE VIEW history AS SELECT epoch, revision FROM store;
CREATE VIEW clock AS
  SELECT CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) AS now_us;
)sql";

// Columns added by schema version 5.
constexpr char kExpiryColumns[] = R"sql(
ALTER TABLE versions ADD COLUMN ttl_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN expire_time_us INTEGER NOT NULL DEFAULT 0;
CREATE INDEX versions_by_expiry ON versions (expire_time_us) WHERE expire_time_us > 0;
)sql";

// Converts schema version i + 1 to the next one. Never changed once released.
constexpr const char* kMigrations[] = {
    // 1: no aliases, deletion or import yet.
    R"sql(
ALTER TABLE mappings ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1));
ALTER TABLE versions ADD COLUMN imported INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1));
ALTER TABLE aliases ADD COLUMN previous_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE aliases ADD COLUMN move_time_us INTEGER NOT NULL DEFAULT 0;
)sql",
    // 2: no revisions yet.
    R"sql(
ALTER TABLE store ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
UPDATE store SET epoch = lower(hex(randomblob(8)));
ALTER TABLE mappings ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX mappings_by_revision ON mappings (revision);
)sql",
    // 3: one server.
    kFleetTables,
    // 4: every version lived for ever.
    kExpiryColumns};
static_assert(std::size(kMigrations) == kSchemaVersion - 1);

// FULL: a commit is on disk when it returns. WAL: a commit is one fsync, and a backup that reads
// the file meanwhile does not make a publish wait.
constexpr char kPragmas[] =
    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;";

// Returns the schema version of a file with tables, if this build can use it.
absl::StatusOr<int64_t> CheckOrigin(SqliteConnection* database) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t application_id,
                          database->QueryInt("PRAGMA application_id"));
  PHIMAP_ASSIGN_OR_RETURN(const int64_t version, database->QueryInt("PRAGMA user_version"));
  if (application_id != kApplicationId) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_INVALID", "",
                     absl::StrCat(database->path(),
                                  " is the database of another program; choose another directory"),
                     {{"path", database->path()}});
  }
  if (version >= 1 && version <= kSchemaVersion) return version;
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "STORE_TOO_NEW", "",
      absl::StrCat(database->path(), " has schema version ", version, ", this server knows ",
                   kSchemaVersion, "; start the release that wrote it, or a later one"),
      {{"path", database->path()},
       {"expected", absl::StrCat(kSchemaVersion)},
       {"actual", absl::StrCat(version)}});
}

absl::Status CheckIntegrity(SqliteConnection* database) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string finding,
                          database->QueryText("PRAGMA integrity_check(1)"));
  if (finding == "ok") return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, "DATABASE_DAMAGED", "",
                   absl::StrCat(database->path(), " is damaged: ", finding,
                                "; restore it from a backup; nothing in the data directory was "
                                "removed"),
                   {{"path", database->path()}});
}

// One transaction, schema version included: after a crash all of `statements` is done or nothing.
absl::Status ChangeSchema(SqliteConnection* database, const std::string& statements) {
  const absl::Status changed = database->Execute(absl::StrCat(
      "BEGIN IMMEDIATE;", statements, "PRAGMA user_version = ", kSchemaVersion, "; COMMIT;"));
  if (!changed.ok() && database->in_transaction()) database->Execute("ROLLBACK").IgnoreError();
  return changed;
}

absl::Status CreateTables(SqliteConnection* database) {
  return ChangeSchema(database, absl::StrCat(kCreateTables, kFleetTables, kExpiryColumns,
                                             "PRAGMA application_id = ", kApplicationId, ";"));
}

absl::Status Migrate(SqliteConnection* database, int64_t version) {
  if (version == kSchemaVersion) return absl::OkStatus();
  std::string statements;
  for (; version < kSchemaVersion; ++version) {
    absl::StrAppend(&statements, kMigrations[version - 1]);
  }
  return ChangeSchema(database, statements);
}

}  // namespace

absl::Status PrepareSchema(SqliteConnection* database) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t objects,
                          database->QueryInt("SELECT count(*) FROM sqlite_schema"));
  int64_t version = 0;
  if (objects > 0) {
    PHIMAP_ASSIGN_OR_RETURN(version, CheckOrigin(database));
    PHIMAP_RETURN_IF_ERROR(CheckIntegrity(database));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::string mode, database->QueryText("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return MakeError(absl::StatusCode::kFailedPrecondition, "WRITE_AHEAD_LOG_NOT_AVAILABLE", "",
                     absl::StrCat(database->path(),
                                  ": the file system offers no shared memory, "
                                  "journal mode is ",
                                  mode, "; use a local file system"),
                     {{"path", database->path()}});
  }
  PHIMAP_RETURN_IF_ERROR(database->Execute(kPragmas));
  return version == 0 ? CreateTables(database) : Migrate(database, version);
}

}  // namespace phimap
