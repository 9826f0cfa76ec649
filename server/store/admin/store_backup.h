// Copies a store while servers work: its names and its artifacts as they were at one moment.
//
// A backup is a folder: phimap.sqlite with the tables (from any kind of database), blobs/ with
// every artifact that the tables refer to, aliases.txt for people, and MANIFEST. MANIFEST is
// written last: a folder without it is not a backup. A backup is consistent for three reasons. A
// hold, taken before the rows are read, keeps every artifact. The rows come from one snapshot. Each
// artifact that the rows refer to is read and checked against its digest.
#ifndef PHIMAP_SERVER_STORE_ADMIN_STORE_BACKUP_H_
#define PHIMAP_SERVER_STORE_ADMIN_STORE_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/admin/admin_store.h"
#include "server/store/files/file_system.h"

namespace phimap {

// Reports the progress of a long operation in artifacts. Returns false to stop it with CANCELLED.
using AdminProgress = std::function<bool(int64_t done, int64_t total)>;

struct BackupReport {
  int64_t mappings = 0;
  int64_t versions = 0;
  int64_t aliases = 0;
  int64_t artifacts = 0;
  int64_t bytes = 0;
  int64_t revision = 0;
  // Artifacts that were left out because they are damaged or missing, with the reason, as text for
  // people.
  std::vector<std::string> damaged;
};

// Copies `from` into `folder`, which must be missing or empty; otherwise returns
// FAILED_PRECONDITION (STORE_NOT_EMPTY). If artifacts are damaged or missing, copies only the other
// artifacts, without tables and MANIFEST, and returns DATA_LOSS (ARTIFACT_DAMAGED), which names the
// damaged ones. With `skip_damaged`, the backup is complete without these artifacts, and
// damaged.txt and the report name them. `holder` describes this program to other programs and to
// people.
absl::StatusOr<BackupReport> BackUp(const AdminStore& from, const std::string& folder,
                                    const std::string& holder, FileSystem* file_system,
                                    const AdminProgress& progress, bool skip_damaged = false);

// Returns FAILED_PRECONDITION (STORE_NOT_EMPTY), naming a file and the caller's `field`, unless
// `folder` is missing or empty.
absl::Status CheckEmpty(const std::string& folder, absl::string_view field,
                        FileSystem* file_system);

// Restores a store from a backup.

// Restores the backup in `folder` into `store`. `store` is a data directory that is missing or
// empty, or a PostgreSQL database without a store; otherwise returns FAILED_PRECONDITION
// (STORE_NOT_EMPTY). Checks the whole backup before it writes anything. Restores names, numbers,
// aliases, times and the store's id. Revisions belong to a new history, so that no client takes an
// old revision for the present state. A server rejects the store of an interrupted restore: empty
// `store` and begin again. Other errors: those of backup_manifest.h and of the databases.
absl::StatusOr<BackupReport> Restore(const std::string& folder, const std::string& store,
                                     FileSystem* file_system, const AdminProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_ADMIN_STORE_BACKUP_H_
