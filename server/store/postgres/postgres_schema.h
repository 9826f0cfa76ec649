// The tables of phimap in PostgreSQL, in their own schema `phimap`.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_SCHEMA_H_
#define PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/store/postgres/postgres_connection.h"

namespace phimap {

// Converts one schema version to the next. Makes only additions that servers of the previous
// version can work with while they still run. A migration is never changed once it has been
// released.
struct PostgresMigration {
  const char* statements;
  // The oldest schema version whose servers can read and write the result.
  int64_t oldest_reader;
};

// Returns all migrations. The first one creates all tables of version 1.
absl::Span<const PostgresMigration> PostgresMigrations();

// Creates the tables, or migrates them to the version that equals the number of `migrations`, in
// one transaction under a lock. So any number of servers may start at once while others work. A
// newer schema that is compatible with servers of this version (`store.oldest_reader`) is left
// unchanged; any other newer schema is FAILED_PRECONDITION (STORE_TOO_NEW).
absl::Status PreparePostgresSchema(
    PostgresConnection& connection,
    absl::Span<const PostgresMigration> migrations = PostgresMigrations());

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_SCHEMA_H_
