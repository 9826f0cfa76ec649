// A store as those see it who look after it: its tables and its artifacts, opened beside the
// servers that have it, or when none runs.
#ifndef PHIMAP_SERVER_ADMIN_ADMIN_STORE_H_
#define PHIMAP_SERVER_ADMIN_ADMIN_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/blobs.h"
#include "server/store/sql_database.h"

namespace phimap {

struct AdminStore {
  // For messages: a folder, or a database and its host.
  std::string place;
  std::shared_ptr<SqlDatabase> database;
  std::shared_ptr<Blobs> blobs;
};

// File name of the database in a data directory.
inline constexpr absl::string_view kDatabaseFile = "phimap.sqlite";

// Time to wait for a server that writes; its writes are short.
inline constexpr absl::Duration kAdminBusyTimeout = absl::Seconds(30);

// Whether `store` is the address of a PostgreSQL; otherwise it is a data directory.
bool IsPostgres(absl::string_view store);

// INVALID_ARGUMENT for a malformed PostgreSQL address, or one with a password, which every user of
// the machine could see.
absl::Status CheckAddress(const std::string& store);

// Opens a store that exists. Changes nothing: tables of an earlier release are FAILED_PRECONDITION
// (SCHEMA_TOO_OLD), since a server of that release may be at work. Errors: NOT_FOUND
// (STORE_NOT_FOUND), and the databases' errors.
absl::StatusOr<AdminStore> OpenAdminStore(const std::string& store);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_ADMIN_STORE_H_
