// The tables of a catalog and the statements on them, which are the same for every database. All
// statements run within one session. The caller decides which of them belong in one transaction
// (sql_catalog.h).
#ifndef PHIMAP_SERVER_STORE_CATALOG_TABLES_H_
#define PHIMAP_SERVER_STORE_CATALOG_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"

namespace phimap {

// Cheap to make; must not outlive its session. Errors: those of Store and of the database.
class CatalogTables {
 public:
  explicit CatalogTables(SqlSession& session) : session_(session) {}

  absl::StatusOr<std::string> StoreId();
  absl::StatusOr<Revision> CurrentRevision();
  // See Store.
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since);
  absl::StatusOr<bool> IsInHistory(const Revision& revision);
  // Increments the revision, because the mapping's names change, and stores it as the mapping's
  // revision.
  absl::Status CountChange(absl::string_view mapping);

  absl::StatusOr<bool> HasMappings();
  absl::StatusOr<MappingRecord> GetMapping(absl::string_view name);
  absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after, int limit);
  // Marks the mapping as deleted. Its counter of version numbers is kept.
  absl::Status MarkMappingDeleted(absl::string_view mapping);

  // Returns the next version number of the mapping, which is created if it does not exist, or
  // restored if it was deleted.
  absl::StatusOr<int64_t> TakeNumber(absl::string_view mapping, absl::Time now);
  absl::Status InsertVersion(const VersionRecord& version);
  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number);
  absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                          std::optional<int64_t> before, int limit);
  // Returns 0 if the mapping has no version.
  absl::StatusOr<int64_t> NewestVersion(absl::string_view mapping);
  // See Store; finds a version by a digest's first digits.
  absl::StatusOr<VersionRecord> GetVersionByDigest(absl::string_view mapping,
                                                   absl::string_view digest);
  // Deletes one version, or all if `number` is nullopt, with their builds. Lists their artifacts as
  // unreferenced if no version refers to them any more.
  absl::Status DeleteVersions(absl::string_view mapping, std::optional<int64_t> number);

  absl::StatusOr<std::optional<VersionRecord>> FindDigest(absl::string_view mapping,
                                                          absl::string_view digest);
  absl::StatusOr<std::optional<int64_t>> ArtifactSizeBytes(absl::string_view digest);
  absl::StatusOr<absl::flat_hash_set<std::string>> ReferencedDigests();
  // List adds the artifact to the list of unreferenced artifacts, with the present time, unless a
  // version refers to it or it is already listed. Unlist removes it from the list.
  absl::Status List(absl::string_view digest);
  absl::Status Unlist(absl::string_view digest);

  absl::StatusOr<std::optional<AliasRecord>> FindAlias(absl::string_view mapping,
                                                       absl::string_view alias);
  // Returns the aliases of the mappings from `first` to `last`, sorted by mapping and name.
  absl::StatusOr<std::vector<AliasRecord>> AliasesBetween(absl::string_view first,
                                                          absl::string_view last);
  absl::Status PutAlias(const AliasRecord& alias);
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias);

  absl::Status InsertBuild(const BuildRecord& build);
  absl::Status DeleteBuild(absl::string_view mapping, absl::string_view build_id);
  absl::StatusOr<bool> HasBuild(absl::string_view mapping, absl::string_view build_id,
                                absl::Time now);
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping, absl::string_view build_id,
                                       absl::Time now);
  // Deletes builds that ended more than kBuildRetention ago; returns their number.
  absl::StatusOr<int64_t> DeleteExpiredBuilds(absl::Time now);

 private:
  // Returns the id of a revision: "" if there is none with this number.
  absl::StatusOr<std::string> IdOfRevision(int64_t number);
  absl::StatusOr<std::vector<Revision>> RevisionsAfter(int64_t number);
  // Returns the digests of one version, or of all versions.
  absl::StatusOr<SqlRows> DigestsOf(absl::string_view mapping, std::optional<int64_t> number);
  // Returns the mappings whose names changed after revision `since`. If `living` is true, omits
  // deleted mappings.
  absl::StatusOr<std::vector<MappingNames>> NamesSince(int64_t since, bool living);
  SqlSession& session_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_TABLES_H_
