// A store that an administration tool has opened: its tables and its artifacts. Servers may be
// using it at the same time.
#ifndef PHIMAP_SERVER_STORE_ADMIN_ADMIN_STORE_H_
#define PHIMAP_SERVER_STORE_ADMIN_ADMIN_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/blobs.h"
#include "server/store/sql_database.h"

namespace phimap {

struct AdminStore {
  // The store in words, for messages: a folder, or a database and its host.
  std::string place;
  std::shared_ptr<SqlDatabase> database;
  std::shared_ptr<Blobs> blobs;
};

// File name of the database in a data directory.
inline constexpr absl::string_view kDatabaseFile = "phimap.sqlite";

// How long to wait for a server that is writing. A server's writes are short.
inline constexpr absl::Duration kAdminBusyTimeout = absl::Seconds(30);

// Returns whether `store` is the address of a PostgreSQL database. Otherwise it is a data
// directory.
bool IsPostgres(absl::string_view store);

// Returns INVALID_ARGUMENT for a malformed PostgreSQL address, or for an address with a password,
// which every user of the machine could see.
absl::Status CheckAddress(const std::string& store);

// Opens an existing store, and changes nothing. Tables of an earlier release are
// FAILED_PRECONDITION (SCHEMA_TOO_OLD), because a server of that release may be running. Other
// errors: NOT_FOUND (STORE_NOT_FOUND), and errors of the database.
absl::StatusOr<AdminStore> OpenAdminStore(const std::string& store);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_ADMIN_ADMIN_STORE_H_
