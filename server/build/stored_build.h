// A build that has ended, as the store records it.
#ifndef PHIMAP_SERVER_BUILD_STORED_BUILD_H_
#define PHIMAP_SERVER_BUILD_STORED_BUILD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/build/build_job.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

struct StoredBuild {
  BuildSnapshot snapshot;
  std::string spec_digest;
};

// Reads an ended build. Blocking. `memory` is used as in ReadCertifiedVersion. Returns errors of
// the store and of `memory`, and NOT_FOUND for an id that the store does not know.
absl::StatusOr<StoredBuild> ReadStoredBuild(Store& store, VersionRegistry& registry,
                                            const BuildId& id, MemoryBudget* memory = nullptr);

// Returns the record of a build that failed or was cancelled now, for the store, whose clock says
// when that is.
BuildRecord FailureRecord(const BuildJob& job, const absl::Status& error);

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_STORED_BUILD_H_
