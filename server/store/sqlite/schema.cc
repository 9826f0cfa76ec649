#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/sqlite/sqlite_database.h"

namespace phimap {
namespace {

// Times are microseconds since 1970. Every row of `versions` and its index on `digest` together
// hold the digest twice. So integrity_check notices a flipped bit, and start-up cannot mistake the
// blob for an unreferenced one.
//
// `mappings.next_version` is kept when versions are deleted, so that no number is used twice. For
// the same reason, the row of a deleted mapping is kept. `builds` does not reference mappings,
// because a failed first build leaves a record but no mapping. `aliases.previous_version`
// references no version, because that version may be deleted.
//
// `store.revision` counts the changes of names, and `mappings.revision` is the revision of the
// mapping's last change. So the changes since a revision are found by comparison. `changes` gives
// each revision a random id, by a trigger, so that no program that counts a change can leave it
// out. Two copies of a store that went different ways have different ids from there on. The ids of
// the last 100,000 changes are kept.
//
// `operations` lists the changes that were made, by the ids that callers gave them.
//
// `unreferenced` lists artifacts that no version refers to, and since when. `holds` lists programs
// that need all artifacts to be kept, such as a backup in progress. `leases` says which server does
// work that only one server should do, such as collecting garbage. `claims` lists the builds in
// progress on any server; a claim's epoch increases whenever a server takes the claim, and
// publishing checks the epoch. `servers` lists the servers that use this store, and the newest
// formats that they read.
//
// `versions.ttl_us` is how long a version lives after its last use. `versions.expire_time_us` is
// when that time ends, counted from the last recorded use. Both are 0 for a version that lives for
// ever.
//
// `head` and `clock` are views for statements that all databases share: the catalog's revision
// with its id, and the current time.
//
// The columns have the order in which migrations added them, so that old and new files have the
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

// Tables added by schema version 6, which no longer uses `store.epoch`.
constexpr char kChangeTables[] = R"sql(
CREATE TABLE changes (
  revision INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL
) STRICT;
CREATE TRIGGER change_counted AFTER UPDATE OF revision ON store BEGIN
  INSERT OR REPLACE INTO changes VALUES (NEW.revision, lower(hex(randomblob(12))));
  DELETE FROM changes WHERE revision <= NEW.revision - 100000;
END;
UPDATE store SET revision = revision;
CREATE TABLE operations (
  operation_id TEXT PRIMARY KEY NOT NULL,
  request TEXT NOT NULL,
  outcome TEXT NOT NULL,
  end_time_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operations_by_end_time ON operations (end_time_us);
DROP VIEW history;
CREATE VIEW head AS
  SELECT coalesce((SELECT id FROM changes c WHERE c.revision = s.revision), '') AS id, s.revision
  FROM store s;
DROP VIEW clock;
CREATE VIEW clock AS
  SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 +
    CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now_us;
)sql";

// Columns and tables added by schema version 7: who made what, and the audit
// (server/store/audit.h). `store.audited` is the number of its newest entry.
constexpr char kAuditTables[] = R"sql(
ALTER TABLE versions ADD COLUMN made_by TEXT NOT NULL DEFAULT '';
ALTER TABLE aliases ADD COLUMN moved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE claims ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN audited INTEGER NOT NULL DEFAULT 0;
CREATE INDEX versions_by_maker ON versions (made_by) WHERE made_by <> '';
CREATE TABLE audit (
  number INTEGER PRIMARY KEY NOT NULL,
  time_us INTEGER NOT NULL,
  method TEXT NOT NULL,
  principal TEXT NOT NULL,
  peer TEXT NOT NULL,
  request_id TEXT NOT NULL,
  mapping TEXT NOT NULL,
  alias TEXT NOT NULL,
  build_id TEXT NOT NULL,
  previous_version INTEGER NOT NULL,
  previous_digest TEXT NOT NULL,
  version INTEGER NOT NULL,
  digest TEXT NOT NULL,
  outcome TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (time_us);
CREATE INDEX audit_by_mapping ON audit (mapping, number);
CREATE INDEX audit_by_principal ON audit (principal, number);
)sql";

// Element i converts schema version i + 1 to the next one. A migration is never changed once it has
// been released.
constexpr const char* kMigrations[] = {
    // From version 1, which had no aliases, deletion or import.
    R"sql(
ALTER TABLE mappings ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1));
ALTER TABLE versions ADD COLUMN imported INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1));
ALTER TABLE aliases ADD COLUMN previous_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE aliases ADD COLUMN move_time_us INTEGER NOT NULL DEFAULT 0;
)sql",
    // From version 2, which had no revisions.
    R"sql(
ALTER TABLE store ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
UPDATE store SET epoch = lower(hex(randomblob(8)));
ALTER TABLE mappings ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX mappings_by_revision ON mappings (revision);
)sql",
    // From version 3, which supported only one server.
    kFleetTables,
    // From version 4, in which every version lived for ever.
    kExpiryColumns,
    // From version 5, whose revisions had no ids.
    kChangeTables,
    // From version 6, which did not say who made what.
    kAuditTables};
static_assert(std::size(kMigrations) == kSchemaVersion - 1);

// synchronous = FULL: a commit is on disk when it returns. With the write-ahead log (WAL), a commit
// is one fsync, and a backup that reads the file does not make a publish wait.
constexpr char kPragmas[] =
    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;";

// Returns the schema version of a file with tables, if this build can use it.
absl::StatusOr<int64_t> CheckOrigin(SqliteConnection* database) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t application_id,
                          database->QueryInt("PRAGMA application_id"));
  PHIMAP_ASSIGN_OR_RETURN(const int64_t version, database->QueryInt("PRAGMA user_version"));
  if (application_id != kApplicationId) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStoreInvalid, "",
                     absl::StrCat(database->path(),
                                  " is the database of another program; choose another directory"),
                     {{"path", database->path()}});
  }
  if (version >= 1 && version <= kSchemaVersion) return version;
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStoreTooNew, "",
                   absl::StrCat(database->path(), " has schema version ", version,
                                ", but this server supports at most ", kSchemaVersion,
                                "; start the release that wrote the file, or a later one"),
                   {{"path", database->path()},
                    {"expected", absl::StrCat(kSchemaVersion)},
                    {"actual", absl::StrCat(version)}});
}

absl::Status CheckIntegrity(SqliteConnection* database) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string finding,
                          database->QueryText("PRAGMA integrity_check(1)"));
  if (finding == "ok") return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, reason::kDatabaseDamaged, "",
                   absl::StrCat(database->path(), " is damaged: ", finding,
                                "; restore it from a backup; "
                                "nothing in the data directory was removed"),
                   {{"path", database->path()}});
}

// Runs `statements` and sets the schema version in one transaction, so that after a crash either
// all of it is done or nothing.
absl::Status ChangeSchema(SqliteConnection* database, const std::string& statements) {
  const absl::Status changed = database->Execute(absl::StrCat(
      "BEGIN IMMEDIATE;", statements, "PRAGMA user_version = ", kSchemaVersion, "; COMMIT;"));
  if (!changed.ok() && database->in_transaction()) database->Execute("ROLLBACK").IgnoreError();
  return changed;
}

absl::Status CreateTables(SqliteConnection* database) {
  return ChangeSchema(database,
                      absl::StrCat(kCreateTables, kFleetTables, kExpiryColumns, kChangeTables,
                                   kAuditTables, "PRAGMA application_id = ", kApplicationId, ";"));
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
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kWriteAheadLogNotAvailable, "",
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
