// The tables that phimap has in PostgreSQL, in a schema of their own, `phimap`.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_SCHEMA_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/postgres/postgres_connection.h"

namespace phimap {

// Converts one schema version to the next. Only additions that servers of the version before can
// work with, while those still run. Never changed once released.
struct PostgresMigration {
  const char* statements;
  // The least schema version whose servers can read and write the result.
  int64_t oldest_reader;
};

// The first creates all tables of version 1.
absl::Span<const PostgresMigration> PostgresMigrations();

// Creates the tables, or migrates them to the version that is the number of `migrations`, in one
// transaction under a lock: any number of servers may start at once, while others work. A newer
// schema that is compatible with servers of this version (`store.oldest_reader`) is left as it is;
// any other is FAILED_PRECONDITION, STORE_TOO_NEW.
absl::Status PreparePostgresSchema(
    PostgresConnection& connection,
    absl::Span<const PostgresMigration> migrations = PostgresMigrations());

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_SCHEMA_H_
