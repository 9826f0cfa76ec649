#include "server/postgres/postgres_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/postgres/postgres_session.h"

namespace phimap {
namespace {

// Columns as in the tables of SQLite (server/store/schema.cc), which the same statements read and
// write: truth is 0 or 1, times are microseconds since 1970, and text compares byte by byte.
//
// `store.revision` is the number of the last change, and `epoch` tells one history of changes from
// another: it changes when a standby is promoted or a backup restored.
//
// STORAGE EXTERNAL: artifacts are numbers, which do not get smaller, and a part of an uncompressed
// chunk can be read without the rest.
constexpr char kCreateTables[] = R"sql(
CREATE TABLE store (
  only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
  store_id TEXT COLLATE "C" NOT NULL,
  epoch TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  schema_version BIGINT NOT NULL,
  oldest_reader BIGINT NOT NULL
);
INSERT INTO store VALUES (1, replace(gen_random_uuid()::text, '-', ''),
                          replace(gen_random_uuid()::text, '-', ''), 0, 0, 0);
CREATE TABLE mappings (
  name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  next_version BIGINT NOT NULL CHECK (next_version >= 1),
  create_time_us BIGINT NOT NULL,
  deleted BIGINT NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
  revision BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE versions (
  mapping TEXT COLLATE "C" NOT NULL REFERENCES mappings (name),
  number BIGINT NOT NULL CHECK (number >= 1),
  digest TEXT COLLATE "C" NOT NULL CHECK (length(digest) = 64),
  artifact_size_bytes BIGINT NOT NULL,
  create_time_us BIGINT NOT NULL,
  input_columns BIGINT NOT NULL,
  output_columns BIGINT NOT NULL,
  serving_type TEXT COLLATE "C" NOT NULL,
  mapping_text TEXT COLLATE "C" NOT NULL,
  kernel_text TEXT COLLATE "C" NOT NULL,
  imported BIGINT NOT NULL DEFAULT 0 CHECK (imported IN (0, 1)),
  PRIMARY KEY (mapping, number)
);
CREATE INDEX versions_by_digest ON versions (digest);
CREATE TABLE aliases (
  mapping TEXT COLLATE "C" NOT NULL,
  alias TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  etag TEXT COLLATE "C" NOT NULL,
  previous_version BIGINT NOT NULL DEFAULT 0,
  move_time_us BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (mapping, alias),
  FOREIGN KEY (mapping, version) REFERENCES versions (mapping, number)
);
CREATE TABLE builds (
  mapping TEXT COLLATE "C" NOT NULL,
  build_id TEXT COLLATE "C" NOT NULL,
  spec_digest TEXT COLLATE "C" NOT NULL,
  rows_received BIGINT NOT NULL,
  end_time_us BIGINT NOT NULL,
  version BIGINT NOT NULL,
  error_code BIGINT NOT NULL,
  error_message TEXT COLLATE "C" NOT NULL,
  error_detail TEXT COLLATE "C",
  PRIMARY KEY (mapping, build_id)
);
CREATE INDEX builds_by_end_time ON builds (end_time_us);
CREATE TABLE blobs (
  digest TEXT COLLATE "C" PRIMARY KEY CHECK (length(digest) = 64),
  size_bytes BIGINT NOT NULL,
  chunk_bytes BIGINT NOT NULL CHECK (chunk_bytes >= 1),
  complete SMALLINT NOT NULL CHECK (complete IN (0, 1)),
  write_time_us BIGINT NOT NULL
);
CREATE TABLE blob_chunks (
  digest TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (digest, number)
);
ALTER TABLE blob_chunks ALTER COLUMN content SET STORAGE EXTERNAL;
)sql";

constexpr PostgresMigration kMigrations[] = {{kCreateTables, 1}};

// "phim", as the application_id of the file of SQLite: whoever else takes advisory locks in this
// database takes others.
constexpr char kLock[] = " SELECT pg_advisory_xact_lock(1885890925);";

struct Found {
  int64_t version = 0;  // 0: no tables.
  int64_t oldest_reader = 0;
};

absl::StatusOr<Found> FindSchema(PostgresConnection& connection) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows table,
                          connection.RunBatch("SELECT to_regclass('phimap.store') IS NOT NULL"));
  if (table.Int(0, 0) == 0) return Found();
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows row,
      connection.RunBatch("SELECT schema_version, oldest_reader FROM store WHERE only_row = 1"));
  if (row.empty()) {
    return MakeError(absl::StatusCode::kDataLoss, "DATABASE_DAMAGED", "",
                     absl::StrCat(connection.place().Text(),
                                  ": phimap.store lacks its row; restore the database from a "
                                  "backup; nothing was changed"));
  }
  return Found{.version = row.Int(0, 0), .oldest_reader = row.Int(0, 1)};
}

absl::Status TooNew(const PostgresPlace& place, const Found& found, int64_t known) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_TOO_NEW", "",
                   absl::StrCat(place.Text(), " has schema version ", found.version,
                                ", made for servers that know ", found.oldest_reader,
                                " or later; this server knows ", known,
                                "; start the release that wrote it, or a later one"),
                   {{"expected", absl::StrCat(known)}, {"actual", absl::StrCat(found.version)}});
}

absl::Status Migrate(PostgresConnection& connection,
                     absl::Span<const PostgresMigration> migrations) {
  const auto known = static_cast<int64_t>(migrations.size());
  PHIMAP_RETURN_IF_ERROR(
      connection.RunBatch(absl::StrCat(BeginWrite(connection.timeouts()), kLock)).status());
  PHIMAP_ASSIGN_OR_RETURN(const Found found, FindSchema(connection));
  if (found.version > known && found.oldest_reader > known) {
    return TooNew(connection.place(), found, known);
  }
  std::string statements;
  if (found.version == 0) {
    // CREATE SCHEMA IF NOT EXISTS wants the right to create one even if it is there.
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows schema,
                            connection.RunBatch("SELECT to_regnamespace('phimap') IS NOT NULL"));
    if (schema.Int(0, 0) == 0) statements = "CREATE SCHEMA phimap;";
  }
  for (int64_t version = found.version; version < known; ++version) {
    absl::StrAppend(&statements, migrations[static_cast<size_t>(version)].statements);
  }
  if (found.version < known) {
    absl::StrAppend(&statements, "UPDATE store SET schema_version = ", known,
                    ", oldest_reader = ", migrations.back().oldest_reader, ";");
  }
  return connection.RunBatch(absl::StrCat(statements, "COMMIT")).status();
}

}  // namespace

absl::Span<const PostgresMigration> PostgresMigrations() { return kMigrations; }

absl::Status PreparePostgresSchema(PostgresConnection& connection,
                                   absl::Span<const PostgresMigration> migrations) {
  const absl::Status status = Migrate(connection, migrations);
  if (!status.ok() && connection.in_transaction()) {
    connection.RunBatch("ROLLBACK").status().IgnoreError();
  }
  return status;
}

}  // namespace phimap
