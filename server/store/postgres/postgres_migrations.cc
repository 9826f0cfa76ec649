#include "server/store/postgres/postgres_schema.h"

namespace phimap {
namespace {

// The columns are those of the SQLite tables (server/store/sqlite/schema.cc), because the same
// statements read and write both: booleans are 0 or 1, times are microseconds since 1970, and text
// compares byte by byte.
//
// `store.revision` is the number of the last change, and `changes` its id, by which histories that
// went different ways are told apart, whatever restored or promoted them: neither the system's
// identifier nor the timeline of the write-ahead log changes with a dump that is loaded, and two
// standbys of one primary may take the same timeline. `epoch` and the view `history` are for
// servers of earlier releases.
//
// STORAGE EXTERNAL turns compression off: artifacts are numbers, which do not compress, and a part
// of an uncompressed chunk can be read without the rest.
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

// 2: tables for several servers, as in SQLite's schema 4.
constexpr char kFleetTables[] = R"sql(
CREATE TABLE unreferenced (
  digest TEXT COLLATE "C" PRIMARY KEY NOT NULL CHECK (length(digest) = 64),
  since_us BIGINT NOT NULL
);
CREATE TABLE holds (
  hold_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  holder TEXT COLLATE "C" NOT NULL,
  end_time_us BIGINT NOT NULL
);
CREATE TABLE leases (
  lease TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  holder TEXT COLLATE "C" NOT NULL,
  end_time_us BIGINT NOT NULL
);
CREATE TABLE claims (
  mapping TEXT COLLATE "C" NOT NULL,
  build_id TEXT COLLATE "C" NOT NULL,
  spec_digest TEXT COLLATE "C" NOT NULL,
  server_id TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL CHECK (epoch >= 1),
  start_time_us BIGINT NOT NULL,
  lease_end_us BIGINT NOT NULL,
  state BIGINT NOT NULL,
  rows_received BIGINT NOT NULL,
  phase TEXT COLLATE "C" NOT NULL,
  fraction_ppm BIGINT NOT NULL,
  followed BIGINT NOT NULL CHECK (followed IN (0, 1)),
  cancelled BIGINT NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1)),
  PRIMARY KEY (mapping, build_id)
);
CREATE TABLE servers (
  server_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  release TEXT COLLATE "C" NOT NULL,
  schema_version BIGINT NOT NULL,
  artifact_format BIGINT NOT NULL,
  arithmetic BIGINT NOT NULL,
  start_time_us BIGINT NOT NULL,
  seen_time_us BIGINT NOT NULL
);
CREATE VIEW history AS
  SELECT epoch || '-' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS epoch, revision
  FROM store;
CREATE VIEW clock AS
  SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now_us;
)sql";

// 3: versions that expire, as in SQLite's schema 5. A server of the previous release deletes no
// expired versions, and does not record that a version is used when rows are mapped with it.
constexpr char kExpiryColumns[] = R"sql(
ALTER TABLE versions ADD COLUMN ttl_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN expire_time_us BIGINT NOT NULL DEFAULT 0;
CREATE INDEX versions_by_expiry ON versions (expire_time_us) WHERE expire_time_us > 0;
)sql";

// 4: ids of changes and operations, as in SQLite's schema 6. A server of the previous release
// counts its changes, so they get ids too; it logs no operations.
constexpr char kChangeTables[] = R"sql(
CREATE TABLE changes (
  revision BIGINT PRIMARY KEY NOT NULL,
  id TEXT COLLATE "C" NOT NULL
);
CREATE FUNCTION change_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO phimap.changes VALUES (NEW.revision, replace(gen_random_uuid()::text, '-', ''))
    ON CONFLICT (revision) DO UPDATE SET id = excluded.id;
  DELETE FROM phimap.changes WHERE revision <= NEW.revision - 100000;
  RETURN NULL;
END $$;
CREATE TRIGGER change_counted AFTER UPDATE OF revision ON store
  FOR EACH ROW EXECUTE FUNCTION change_counted();
UPDATE store SET revision = revision;
CREATE TABLE operations (
  operation_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  request TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL,
  end_time_us BIGINT NOT NULL
);
CREATE INDEX operations_by_end_time ON operations (end_time_us);
CREATE VIEW head AS
  SELECT coalesce((SELECT id FROM changes c WHERE c.revision = s.revision), '') AS id, s.revision
  FROM store s;
)sql";

// 5: who made what, and the audit, as in SQLite's schema 7. The changes of a server of the previous
// release have no entries.
constexpr char kAuditTables[] = R"sql(
ALTER TABLE versions ADD COLUMN made_by TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE aliases ADD COLUMN moved_by TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE claims ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN audited BIGINT NOT NULL DEFAULT 0;
CREATE INDEX versions_by_maker ON versions (made_by) WHERE made_by <> '';
CREATE TABLE audit (
  number BIGINT PRIMARY KEY NOT NULL,
  time_us BIGINT NOT NULL,
  method TEXT COLLATE "C" NOT NULL,
  principal TEXT COLLATE "C" NOT NULL,
  peer TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  mapping TEXT COLLATE "C" NOT NULL,
  alias TEXT COLLATE "C" NOT NULL,
  build_id TEXT COLLATE "C" NOT NULL,
  previous_version BIGINT NOT NULL,
  previous_digest TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  detail TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_by_time ON audit (time_us);
CREATE INDEX audit_by_mapping ON audit (mapping, number);
CREATE INDEX audit_by_principal ON audit (principal, number);
)sql";

constexpr PostgresMigration kMigrations[] = {{kCreateTables, 1},
                                             {kFleetTables, 1},
                                             {kExpiryColumns, 1},
                                             {kChangeTables, 1},
                                             {kAuditTables, 1}};

}  // namespace

absl::Span<const PostgresMigration> PostgresMigrations() { return kMigrations; }

}  // namespace phimap
