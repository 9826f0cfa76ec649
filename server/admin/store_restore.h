// Restores a store from a backup.
#ifndef PHIMAP_SERVER_ADMIN_STORE_RESTORE_H_
#define PHIMAP_SERVER_ADMIN_STORE_RESTORE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/admin/store_backup.h"
#include "server/files/file_system.h"

namespace phimap {

// Restores the backup in `folder` into `store`. `store` is a data directory that is missing or
// empty, or a PostgreSQL database without a store; otherwise returns FAILED_PRECONDITION
// (STORE_NOT_EMPTY). Checks the whole backup before it writes anything. Restores names, numbers,
// aliases, times and the store's id. Revisions belong to a new history, so that no client takes an
// old revision for the present state. A server rejects the store of an interrupted restore: empty
// `store` and begin again. Other errors: those of backup_manifest.h and of the databases.
absl::StatusOr<BackupReport> Restore(const std::string& folder, const std::string& store,
                                     FileSystem* file_system, const AdminProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_STORE_RESTORE_H_
