// A store whose calls are counted and timed.
#ifndef PHIMAP_SERVER_STORE_METERED_STORE_H_
#define PHIMAP_SERVER_STORE_METERED_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/observe/metrics.h"
#include "server/store/store.h"

namespace phimap {

// Forwards every call to `store`. Thread-safe if `store` is.
class MeteredStore final : public Store {
 public:
  // `metrics` must outlive the store.
  MeteredStore(std::unique_ptr<Store> store, const StoreMetrics& metrics);

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
  // Measures the call that opens the artifact, but not the reads that follow.
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
  // Claims are not metered, because their frequent renewals would dominate the metrics.
  BuildClaims* claims() override { return store_->claims(); }

 private:
  const std::unique_ptr<Store> store_;
  const StoreMetrics& metrics_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_METERED_STORE_H_
