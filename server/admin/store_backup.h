// A copy of a store, of its names and its artifacts as they were at one moment, made while servers
// work.
//
// A backup is a folder: phimap.sqlite with the tables (from any kind of database), blobs/ with
// every artifact that they name, aliases.txt for people, and MANIFEST, which is written last: a
// folder without it is not a backup. Why it is consistent: a hold keeps every artifact that is
// there from before the moment on; the rows come from one snapshot; and each artifact that they
// name is read against its digest.
#ifndef PHIMAP_SERVER_ADMIN_STORE_BACKUP_H_
#define PHIMAP_SERVER_ADMIN_STORE_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/admin/admin_store.h"
#include "server/files/file_system.h"

namespace phimap {

// Reports the progress of a long operation in artifacts; returning false asks it to stop
// (CANCELLED).
using AdminProgress = std::function<bool(int64_t done, int64_t total)>;

struct BackupReport {
  int64_t mappings = 0;
  int64_t versions = 0;
  int64_t aliases = 0;
  int64_t artifacts = 0;
  int64_t bytes = 0;
  int64_t revision = 0;
  // Artifacts that are damaged or missing and were left out, with the reason, for people.
  std::vector<std::string> damaged;
};

// Copies `from` into `folder`, which must be missing or empty (FAILED_PRECONDITION,
// STORE_NOT_EMPTY). DATA_LOSS (ARTIFACT_DAMAGED) names a damaged or missing artifact; all else is
// copied without a MANIFEST. With `skip_damaged` the backup is complete without these artifacts,
// and MANIFEST and the report name them. `holder` names this program to others.
absl::StatusOr<BackupReport> BackUp(const AdminStore& from, const std::string& folder,
                                    const std::string& holder, FileSystem* file_system,
                                    const AdminProgress& progress, bool skip_damaged = false);

// FAILED_PRECONDITION (STORE_NOT_EMPTY), naming a file and the caller's `field`, unless `folder` is
// missing or empty.
absl::Status CheckEmpty(const std::string& folder, absl::string_view field,
                        FileSystem* file_system);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_STORE_BACKUP_H_
