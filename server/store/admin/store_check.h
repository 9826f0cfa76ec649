// Checks a store: reads every artifact that a version refers to, and compares it with its digest
// and size.
#ifndef PHIMAP_SERVER_STORE_ADMIN_STORE_CHECK_H_
#define PHIMAP_SERVER_STORE_ADMIN_STORE_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/admin/admin_store.h"
#include "server/store/admin/store_backup.h"

namespace phimap {

struct DamagedArtifact {
  std::string digest;
  std::string what;
  // Version names, such as "letters@3".
  std::vector<std::string> versions;
  bool set_aside = false;
};

struct CheckReport {
  int64_t versions = 0;
  int64_t artifacts = 0;
  int64_t bytes = 0;
  std::vector<DamagedArtifact> damaged;
  // Artifacts that no version refers to; the garbage collector will remove them.
  int64_t unnamed_artifacts = 0;
  int64_t unnamed_bytes = 0;
};

// Checks the store. With `quarantine`, sets damaged artifacts aside: the versions that refer to
// them are then reported as damaged at once, and importing an exported file or building again
// repairs them. Changes nothing else. A version that is deleted meanwhile does not count as
// damaged.
absl::StatusOr<CheckReport> CheckStore(const AdminStore& store, bool quarantine,
                                       const AdminProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_ADMIN_STORE_CHECK_H_
