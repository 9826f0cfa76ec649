// The rows of a store: mappings, versions, aliases and finished builds. Blobs are stored elsewhere.
//
// Each change is one transaction and increments the revision. Several processes may change one
// catalog: their changes are serialized, and revisions are in the order of the commits.
//
// Commits in doubt. If the answer of a commit is lost, the change looks for its own row in the log
// of operations (operation_log.h). If it cannot look, or if the catalog's history is not the one
// that the change began in, it returns UNAVAILABLE with the reason COMMIT_IN_DOUBT.
//
// Times are those of the database's clock (store_clock.h).
//
// Blocking: every call may wait for a disk, a network or another writer. Thread-safety: all methods
// may be called from any thread. Errors: those of Store, and of the database (sql_database.h).
#ifndef PHIMAP_SERVER_STORE_CATALOG_H_
#define PHIMAP_SERVER_STORE_CATALOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/records.h"

namespace phimap {

class Catalog {
 public:
  virtual ~Catalog() = default;

  // Returns the random id that was chosen when the catalog was created.
  virtual absl::StatusOr<std::string> StoreId() = 0;
  // See Store.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since) = 0;
  virtual absl::StatusOr<bool> IsInHistory(const Revision& revision) = 0;

  // Returns the size of an artifact, or nullopt if no version has this digest.
  virtual absl::StatusOr<std::optional<int64_t>> ArtifactSizeBytes(absl::string_view digest) = 0;

  // Checks whether this request would be accepted now: ALREADY_EXISTS, ABORTED, or OK.
  virtual absl::Status CheckPublishable(const PublishRequest& request) = 0;
  // Checks the request as CheckPublishable does and inserts the version and its build, in one
  // transaction. Here and in ImportVersion, UNAVAILABLE with the reason ARTIFACT_REMOVED means that
  // the blob has been removed, and the caller must write it again.
  virtual absl::StatusOr<VersionRecord> InsertVersion(const PublishRequest& request,
                                                      absl::string_view digest,
                                                      int64_t size_bytes) = 0;
  // If the record has no `end_time` (absl::Time()), it ended now.
  virtual absl::Status InsertFailedBuild(const BuildRecord& record) = 0;
  // Returns the version of `version.mapping` that has this digest, or inserts a new one, in one
  // transaction.
  virtual absl::StatusOr<VersionRecord> ImportVersion(const VersionRecord& version,
                                                      absl::string_view digest,
                                                      int64_t size_bytes) = 0;
  // Removes builds that ended more than kBuildRetention ago, and returns their number; removes
  // operations that ended more than kOperationRetention ago. Changes no names, and therefore not
  // the revision. Removes nothing while the clock is not trusted.
  virtual absl::StatusOr<int64_t> Prune() = 0;

  // See Store.
  virtual absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                               absl::string_view build_id) = 0;
  virtual absl::StatusOr<MappingRecord> GetMapping(absl::string_view name) = 0;
  virtual absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                                  int limit) = 0;
  virtual absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                                   std::optional<int64_t> number) = 0;
  virtual absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                                  std::optional<int64_t> before,
                                                                  int limit) = 0;
  virtual absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                          absl::string_view alias) = 0;
  virtual absl::StatusOr<VersionRecord> GetVersionByDigest(absl::string_view mapping,
                                                           absl::string_view digest) = 0;

  // See Store. Artifacts that no version refers to any longer are listed as unreferenced in the
  // same transaction (garbage_collector.h).
  virtual absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                               int64_t version, absl::string_view etag,
                                               absl::string_view operation_id) = 0;
  virtual absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                   absl::string_view etag, absl::string_view operation_id) = 0;
  virtual absl::Status DeleteVersion(absl::string_view mapping, int64_t number, Rollbacks rollbacks,
                                     absl::string_view operation_id) = 0;
  virtual absl::Status DeleteMapping(absl::string_view mapping, Occupied occupied,
                                     absl::string_view operation_id) = 0;
  virtual absl::StatusOr<VersionRecord> KeepVersion(absl::string_view mapping, int64_t number,
                                                    absl::Duration ttl,
                                                    absl::string_view operation_id) = 0;
  virtual absl::Status RecordUses(const std::vector<VersionName>& used) = 0;
  virtual absl::StatusOr<std::vector<VersionName>> DeleteExpired() = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_H_
