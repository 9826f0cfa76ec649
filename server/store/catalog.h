// The rows of the store: mappings, versions and builds in phimap.sqlite. Blobs are somebody else's.
//
// Commits in doubt. When COMMIT fails (say, fsync reports an error), the transaction's frames may
// be in the write-ahead log nevertheless: this process does not see them, but recovery after a
// crash would. So after a failed COMMIT the catalog is in doubt until Settle has committed another,
// empty-handed transaction. That overwrites the doubtful frames or comes after them; either way
// what is read from then on is what a crash leaves behind. Nothing else is written in the meantime.
//
// Not thread-safe: the store holds a lock. Every call may wait for the disk.
#ifndef PHIMAP_SERVER_STORE_CATALOG_H_
#define PHIMAP_SERVER_STORE_CATALOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/sqlite_database.h"
#include "server/store/store.h"

namespace phimap {

class Catalog {
 public:
  // Opens the file, creates its tables when it is empty, and checks it (schema.h).
  static absl::StatusOr<std::unique_ptr<Catalog>> Open(const std::string& path,
                                                       absl::Duration busy_timeout);

  // Random, chosen when the file was created.
  absl::StatusOr<std::string> StoreId();
  absl::StatusOr<bool> HasMappings();
  absl::StatusOr<absl::flat_hash_set<std::string>> ReferencedDigests();
  absl::StatusOr<bool> IsReferenced(absl::string_view digest);
  // nullopt when no version has this digest.
  absl::StatusOr<std::optional<int64_t>> ArtifactSizeBytes(absl::string_view digest);

  // Whether this request would be accepted now: ALREADY_EXISTS, ABORTED, or OK.
  absl::Status CheckPublishable(const PublishRequest& request, absl::Time now);
  // Checks again and inserts the version and its build in one transaction. When it fails and
  // in_doubt() is false afterwards, nothing is stored and nothing will appear.
  absl::StatusOr<VersionRecord> InsertVersion(const PublishRequest& request,
                                              absl::string_view digest, int64_t size_bytes,
                                              absl::Time now);
  absl::Status InsertFailedBuild(const BuildRecord& record, absl::Time now);
  // The version of `version.mapping` that has this digest, or else a new one, in one transaction.
  absl::StatusOr<VersionRecord> ImportVersion(const VersionRecord& version,
                                              absl::string_view digest, int64_t size_bytes,
                                              absl::Time now);
  // Removes builds that ended more than kBuildRetention ago; returns how many.
  absl::StatusOr<int64_t> PruneBuilds(absl::Time now);

  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping, absl::string_view build_id,
                                       absl::Time now);
  absl::StatusOr<MappingRecord> GetMapping(absl::string_view name);
  absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after, int limit);
  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number);
  absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                          std::optional<int64_t> before, int limit);
  absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                  absl::string_view alias);

  // In catalog_lifecycle.cc, each in one transaction; see Store. What is deleted may leave
  // artifacts that nothing refers to: their digests are added to `digests`, also when the commit is
  // in doubt.
  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag, absl::Time now);
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag);
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number, Rollbacks rollbacks,
                             std::vector<std::string>* digests);
  absl::Status DeleteMapping(absl::string_view mapping, std::vector<std::string>* digests);

  bool in_doubt() const { return in_doubt_; }
  // OK at once unless in doubt.
  absl::Status Settle();

 private:
  explicit Catalog(std::unique_ptr<SqliteDatabase> database) : database_(std::move(database)) {}

  // Runs `body` between BEGIN IMMEDIATE and COMMIT. An error of `body` rolls back. A failed COMMIT
  // is settled, and counts as done if `is_stored` then says so. REQUIRES: not in doubt.
  absl::Status InTransaction(const std::function<absl::Status()>& body,
                             const std::function<absl::StatusOr<bool>()>& is_stored);
  void RollBack();
  absl::StatusOr<bool> HasBuild(absl::string_view mapping, absl::string_view build_id,
                                absl::Time now);
  absl::StatusOr<int64_t> NewestVersion(absl::string_view mapping);
  absl::StatusOr<int64_t> TakeNumber(absl::string_view mapping, absl::Time now);
  absl::Status InsertVersionRow(const VersionRecord& version);
  absl::Status InsertBuildRow(const BuildRecord& build);
  absl::StatusOr<int64_t> DeleteExpiredBuilds(absl::Time now);
  absl::StatusOr<std::optional<VersionRecord>> FindDigest(absl::string_view mapping,
                                                          absl::string_view digest);
  absl::StatusOr<std::optional<AliasRecord>> FindAlias(absl::string_view mapping,
                                                       absl::string_view alias);
  // Those of the mappings from `first` to `last`, by mapping and name.
  absl::StatusOr<std::vector<AliasRecord>> AliasesBetween(absl::string_view first,
                                                          absl::string_view last);
  absl::Status PutAlias(const AliasRecord& alias);
  // Whether aliases stand in the way of deleting a version.
  absl::Status CheckUnused(absl::string_view mapping, int64_t number, Rollbacks rollbacks);
  // Adds the digests of one version, or of all, to `digests`.
  absl::Status CollectDigests(absl::string_view mapping, std::optional<int64_t> number,
                              std::vector<std::string>* digests);
  // Deletes one version, or all, with their builds.
  absl::Status DeleteVersionRows(absl::string_view mapping, std::optional<int64_t> number);

  const std::unique_ptr<SqliteDatabase> database_;
  bool in_doubt_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_H_
