// A store of a catalog and blobs, whichever they are.
//
// How the invariants of Store are kept:
//   1. Publish writes the blob durably before the transaction that names it.
//   2. and 3. are the catalog's.
//   4. A failed Publish removes its blob again, unless a version or a concurrent publisher refers
//   to it. What could not be removed at once (the disk failed, the commit is in doubt) is removed
//   with the next write, or at start-up.
//   5. is the catalog's.
//   6. A deletion removes a blob after its commit, in the same way and with the same care as 4.
#ifndef PHIMAP_SERVER_STORE_CATALOG_STORE_H_
#define PHIMAP_SERVER_STORE_CATALOG_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "server/store/blobs.h"
#include "server/store/catalog.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

// RecordFailedBuild takes `end_time` from the record; an unset one (absl::Time()) becomes the
// store's clock.
class CatalogStore : public Store {
 public:
  // Called under no lock of the caller, from any thread.
  using Clock = std::function<absl::Time()>;

  CatalogStore(std::unique_ptr<Catalog> catalog, std::unique_ptr<Blobs> blobs, Clock clock);

  absl::StatusOr<VersionRecord> Publish(const PublishRequest& request,
                                        absl::string_view artifact) override;
  absl::StatusOr<VersionRecord> Import(const VersionRecord& version,
                                       absl::string_view artifact) override;
  absl::Status RecordFailedBuild(const BuildRecord& record) override;
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                       absl::string_view build_id) override;
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since) override;
  absl::StatusOr<MappingRecord> GetMapping(absl::string_view name) override;
  absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                          int limit) override;
  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number) override;
  absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                          std::optional<int64_t> before,
                                                          int limit) override;
  absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                  absl::string_view alias) override;
  absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) override;
  absl::StatusOr<std::string> ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(absl::string_view digest) override;
  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag) override;
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag) override;
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                             Rollbacks rollbacks = Rollbacks::kKeep) override;
  absl::Status DeleteMapping(absl::string_view mapping) override;

 private:
  using Insert = absl::FunctionRef<absl::StatusOr<VersionRecord>()>;

  // Writes the artifact durably, then inserts the row that names it.
  absl::StatusOr<VersionRecord> Add(const std::string& digest, absl::string_view artifact,
                                    Insert insert) ABSL_LOCKS_EXCLUDED(mutex_);
  // Announces that this digest's blob is about to be written: from here to Unpin nobody removes it.
  void Pin(const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unpin(const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes blobs that were written in vain, or deleted, and that nobody refers to, these among
  // them. What cannot be removed or judged now stays listed.
  void RemoveGarbage(const std::vector<std::string>& digests = {}) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<int64_t> ArtifactSizeBytes(absl::string_view digest);
  // A blob that cannot be read because its version was deleted meanwhile is not damaged.
  absl::Status UnlessDeleted(absl::string_view digest, const absl::Status& error);

  const std::unique_ptr<Catalog> catalog_;
  const std::unique_ptr<Blobs> blobs_;
  const Clock clock_;

  Mutex mutex_;
  // Publishers at work, by digest.
  absl::flat_hash_map<std::string, int> pins_ ABSL_GUARDED_BY(mutex_);
  // Digests whose publisher failed, or whose version was deleted.
  absl::flat_hash_set<std::string> garbage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_STORE_H_
