// The tables of phimap.sqlite, and the checks that a file must pass before it is used.
#ifndef PHIMAP_SERVER_SQLITE_SCHEMA_H_
#define PHIMAP_SERVER_SQLITE_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/sqlite/sqlite_connection.h"

namespace phimap {

// Schema version, stored in the file's user_version. A file with a greater number was written by a
// newer phimap and is rejected. A file with a smaller number is migrated.
inline constexpr int64_t kSchemaVersion = 6;
// Stored in the file's application_id: "phim". Distinguishes our files from other SQLite databases.
inline constexpr int64_t kApplicationId = 0x7068696d;

// Prepares `database` for use. Rejects a newer schema or a foreign file (FAILED_PRECONDITION) and a
// damaged file (DATA_LOSS) before it writes anything. Then sets the connection's pragmas, and
// creates or migrates the tables in one transaction.
absl::Status PrepareSchema(SqliteConnection* database);

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_SCHEMA_H_
