#include "server/store/admin/admin_store.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/files/file_blobs.h"
#include "server/store/files/file_system.h"
#include "server/store/postgres/postgres_blobs.h"
#include "server/store/postgres/postgres_database.h"
#include "server/store/postgres/postgres_uri.h"
#include "server/store/sqlite/sqlite_connection.h"
#include "server/store/sqlite/sqlite_database.h"

namespace phimap {
namespace {

absl::Status NoStore(const std::string& path) {
  return MakeError(absl::StatusCode::kNotFound, reason::kStoreNotFound, "store",
                   absl::StrCat("there is no ", path,
                                "; expected the --data_dir of a server, or postgresql://…"),
                   {{"path", path}});
}

absl::Status OldSchema(const std::string& path, int64_t version) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kSchemaTooOld, "store",
      absl::StrCat(
          path, " has schema version ", version, ", but this release uses ", kSchemaVersion,
          ": use the matching release, or start phimapd of this release on it once to migrate it"),
      {{"expected", absl::StrCat(kSchemaVersion)}, {"actual", absl::StrCat(version)}});
}

absl::Status CheckSchema(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> connection,
                          SqliteConnection::Open(path, kAdminBusyTimeout));
  PHIMAP_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInt("PRAGMA user_version"));
  return version >= kSchemaVersion ? absl::OkStatus() : OldSchema(path, version);
}

absl::StatusOr<AdminStore> OpenDirectory(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kDatabaseFile);
  if (absl::IsNotFound(PosixFileSystem()->SizeBytes(path).status())) return NoStore(path);
  PHIMAP_RETURN_IF_ERROR(CheckSchema(path));
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<SqlDatabase> database,
                          SqliteDatabase::Open(path, kAdminBusyTimeout));
  return AdminStore{directory, std::move(database),
                    std::make_shared<FileBlobs>(directory, PosixFileSystem())};
}

}  // namespace

bool IsPostgres(absl::string_view store) {
  return absl::StartsWith(store, "postgresql://") || absl::StartsWith(store, "postgres://");
}

absl::Status CheckAddress(const std::string& store) {
  return IsPostgres(store) ? CheckPostgresUri(store) : absl::OkStatus();
}

absl::StatusOr<AdminStore> OpenAdminStore(const std::string& store) {
  if (!IsPostgres(store)) return OpenDirectory(store);
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<PostgresDatabase> database,
                          PostgresDatabase::Open(store));
  const std::string place = database->place();
  auto blobs = std::make_shared<PostgresBlobs>(database);
  return AdminStore{place, std::move(database), std::move(blobs)};
}

}  // namespace phimap
