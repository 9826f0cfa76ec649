#include "server/store/postgres/postgres_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/postgres/postgres_connection.h"

namespace phimap {
namespace {

// "phim" in ASCII, like the application_id of the SQLite file. Other users of advisory locks in
// this database use other numbers.
constexpr char kLock[] = " SELECT pg_advisory_xact_lock(1885890925);";

// Locks the row that every writer locks first. If two writers took their locks in opposite orders,
// a deadlock would end one of them.
constexpr char kTakeStore[] = "SELECT only_row FROM store WHERE only_row = 1 FOR UPDATE;";

// Readers and a migration may deadlock; PostgreSQL then fails one of them, which retries.
constexpr int kMigrationAttempts = 20;

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
    return MakeError(absl::StatusCode::kDataLoss, reason::kDatabaseDamaged, "",
                     absl::StrCat(connection.place().Text(),
                                  ": phimap.store lacks its row; restore the database from a "
                                  "backup; nothing was changed"));
  }
  return Found{.version = row.Int(0, 0), .oldest_reader = row.Int(0, 1)};
}

absl::Status TooNew(const PostgresPlace& place, const Found& found, int64_t known) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStoreTooNew, "",
                   absl::StrCat(place.Text(), " has schema version ", found.version,
                                ", for servers that support version ", found.oldest_reader,
                                " or later; this server supports at most ", known,
                                "; start the release that wrote the schema, or a later one"),
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
  if (found.version > 0 && found.version < known) statements = kTakeStore;
  if (found.version == 0) {
    // CREATE SCHEMA IF NOT EXISTS requires the right to create a schema even if the schema exists.
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

absl::Status PreparePostgresSchema(PostgresConnection& connection,
                                   absl::Span<const PostgresMigration> migrations) {
  for (int attempt = 1;; ++attempt) {
    const absl::Status status = Migrate(connection, migrations);
    if (status.ok()) return status;
    const bool again = IsSerializationFailure(connection.last_sqlstate());
    if (connection.in_transaction()) {
      connection.RunBatch("ROLLBACK").status().IgnoreError();
    }
    if (!again || attempt == kMigrationAttempts) return status;
  }
}

}  // namespace phimap
