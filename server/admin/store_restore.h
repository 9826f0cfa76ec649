// Makes a store of a backup.
#ifndef PHIMAP_SERVER_ADMIN_STORE_RESTORE_H_
#define PHIMAP_SERVER_ADMIN_STORE_RESTORE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/admin/store_backup.h"
#include "server/files/file_system.h"

namespace phimap {

// Restores the backup in `folder` into `store`: a data directory that is missing or empty (a
// server's, or one with a file of another database in it, is FAILED_PRECONDITION, STORE_NOT_EMPTY),
// or a PostgreSQL without a store. The whole backup is checked before anything is written. Names,
// numbers, aliases, times and the store's id are restored; revisions belong to a new history, so
// that no client takes an old revision for the present state. A server refuses the store of an
// interrupted restore: empty the place and begin again. Errors: those of backup_manifest.h and of
// the databases.
absl::StatusOr<BackupReport> Restore(const std::string& folder, const std::string& store,
                                     FileSystem* file_system, const AdminProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_STORE_RESTORE_H_
