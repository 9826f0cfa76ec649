// A store that consists of any catalog and any blobs.
//
// The invariants of Store are kept as follows:
//   1. Publish writes the blob durably before the transaction that refers to it.
//   2. and 3. are kept by the catalog.
//   4. Only the transaction makes anything visible. No version refers to a blob that a failed
//      Publish wrote; the garbage collector finds it (garbage_collector.h).
//   5. is kept by the catalog.
//   6. A deletion lists artifacts as unreferenced; the garbage collector removes them after a grace
//      time. If it removes the blob of a publish or an import before the commit, the blob is
//      written again.
#ifndef PHIMAP_SERVER_STORE_CATALOG_STORE_H_
#define PHIMAP_SERVER_STORE_CATALOG_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/store/blobs.h"
#include "server/store/catalog.h"
#include "server/store/store.h"

namespace phimap {

// RecordFailedBuild takes `end_time` from the record; if that is unset (absl::Time()), it becomes
// the time of the database's clock.
class CatalogStore : public Store {
 public:
  // `claims` is null if no other server shares the catalog.
  CatalogStore(std::unique_ptr<Catalog> catalog, std::shared_ptr<Blobs> blobs,
               std::unique_ptr<BuildClaims> claims = nullptr);

  absl::StatusOr<VersionRecord> Publish(const PublishRequest& request,
                                        absl::string_view artifact) override;
  absl::StatusOr<VersionRecord> Import(const VersionRecord& version,
                                       absl::string_view artifact) override;
  absl::Status RecordFailedBuild(const BuildRecord& record) override;
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                       absl::string_view build_id) override;
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since) override;
  absl::StatusOr<bool> IsInHistory(const Revision& revision) override;
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
  absl::StatusOr<VersionRecord> GetVersionByDigest(absl::string_view mapping,
                                                   absl::string_view digest) override;
  absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) override;
  absl::StatusOr<std::string> ReadArtifactOf(const VersionRecord& version) override;
  absl::StatusOr<std::string> ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(absl::string_view digest) override;
  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag,
                                       absl::string_view operation_id = {}) override;
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag, absl::string_view operation_id = {}) override;
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                             Rollbacks rollbacks = Rollbacks::kKeep,
                             absl::string_view operation_id = {}) override;
  absl::Status DeleteMapping(absl::string_view mapping, Occupied occupied = Occupied::kDelete,
                             absl::string_view operation_id = {}) override;
  absl::StatusOr<VersionRecord> KeepVersion(absl::string_view mapping, int64_t number,
                                            absl::Duration ttl,
                                            absl::string_view operation_id = {}) override;
  absl::Status RecordUses(const std::vector<VersionName>& used) override;
  absl::StatusOr<std::vector<VersionName>> DeleteExpired() override;
  BuildClaims* claims() override { return claims_.get(); }

 private:
  using Insert = absl::FunctionRef<absl::StatusOr<VersionRecord>()>;

  // Writes the artifact durably, then inserts the row that refers to it.
  absl::StatusOr<VersionRecord> Add(const std::string& digest, absl::string_view artifact,
                                    Insert insert);
  absl::StatusOr<int64_t> ArtifactSizeBytes(absl::string_view digest);
  // Returns `error`, unless the version was deleted meanwhile. In that case, returns the error of
  // looking up the version, because a deleted blob is not damaged.
  absl::Status UnlessDeleted(absl::string_view digest, const absl::Status& error);

  const std::unique_ptr<Catalog> catalog_;
  const std::shared_ptr<Blobs> blobs_;
  const std::unique_ptr<BuildClaims> claims_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_STORE_H_
