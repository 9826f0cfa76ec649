#include "server/build/stored_build.h"

#include <memory>
#include <utility>

#include "core/status/status_macros.h"
#include "server/build/version_reader.h"

namespace phimap {

absl::StatusOr<StoredBuild> ReadStoredBuild(Store& store, VersionRegistry& registry,
                                            const BuildId& id, MemoryBudget* memory) {
  PHIMAP_ASSIGN_OR_RETURN(const BuildRecord record, store.GetBuild(id.mapping, id.build_id));
  BuildSnapshot snapshot{.id = id,
                         .state = BuildState::kDone,
                         .rows_received = record.rows_received,
                         .phase = "",
                         .fraction = 1,
                         .version = nullptr,
                         .error = record.error};
  if (!record.error.ok()) {
    snapshot.state = absl::IsCancelled(record.error) ? BuildState::kCancelled : BuildState::kFailed;
    snapshot.fraction = 0;
    return StoredBuild{std::move(snapshot), record.spec_digest};
  }
  Reference reference;
  reference.mapping = id.mapping;
  reference.number = record.version;
  PHIMAP_ASSIGN_OR_RETURN(CertifiedVersion version,
                          ReadCertifiedVersion(store, registry, reference, memory));
  snapshot.version = std::make_shared<const CertifiedVersion>(std::move(version));
  return StoredBuild{std::move(snapshot), record.spec_digest};
}

BuildRecord FailureRecord(const BuildJob& job, const absl::Status& error) {
  return {.mapping = job.id().mapping,
          .build_id = job.id().build_id,
          .spec_digest = job.spec_digest(),
          .rows_received = job.Snapshot().rows_received,
          .version = 0,
          .error = error};
}

}  // namespace phimap
