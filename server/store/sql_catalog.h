// A catalog in the tables of a SQL database of any kind.
#ifndef PHIMAP_SERVER_STORE_SQL_CATALOG_H_
#define PHIMAP_SERVER_STORE_SQL_CATALOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/blobs.h"
#include "server/store/catalog.h"
#include "server/store/catalog_tables.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"
#include "server/store/store_clock.h"

namespace phimap {

class SqlCatalog final : public Catalog {
 public:
  // REQUIRES: `database` has the catalog's tables. A version is inserted only while its artifact is
  // among `blobs`; null turns this check off. `clock` is that of the database.
  explicit SqlCatalog(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs = nullptr,
                      std::shared_ptr<StoreClock> clock = std::make_shared<StoreClock>())
      : database_(std::move(database)), blobs_(std::move(blobs)), clock_(std::move(clock)) {}

  absl::StatusOr<std::string> StoreId() override;
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since) override;
  absl::StatusOr<bool> IsInHistory(const Revision& revision) override;
  absl::StatusOr<bool> HasMappings();
  absl::StatusOr<std::optional<int64_t>> ArtifactSizeBytes(absl::string_view digest) override;

  absl::Status CheckPublishable(const PublishRequest& request) override;
  absl::StatusOr<VersionRecord> InsertVersion(const PublishRequest& request,
                                              absl::string_view digest,
                                              int64_t size_bytes) override;
  absl::Status InsertFailedBuild(const BuildRecord& record) override;
  absl::StatusOr<VersionRecord> ImportVersion(const VersionRecord& version,
                                              absl::string_view digest,
                                              int64_t size_bytes) override;
  absl::StatusOr<int64_t> Prune() override;

  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                       absl::string_view build_id) override;
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

  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag,
                                       absl::string_view operation_id) override;
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag, absl::string_view operation_id) override;
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number, Rollbacks rollbacks,
                             absl::string_view operation_id) override;
  absl::Status DeleteMapping(absl::string_view mapping, Occupied occupied,
                             absl::string_view operation_id) override;
  absl::StatusOr<VersionRecord> KeepVersion(absl::string_view mapping, int64_t number,
                                            absl::Duration ttl,
                                            absl::string_view operation_id) override;
  absl::Status RecordUses(const std::vector<VersionName>& used) override;
  absl::StatusOr<std::vector<VersionName>> DeleteExpired() override;

 private:
  // Returns the result of `read`, which runs on the tables in one snapshot.
  template <typename T, typename Function>
  absl::StatusOr<T> ReadTables(const Function& read);

  // Makes a change and logs it, both in one transaction; `change` gets the time, and returns the
  // outcome to be logged. If the operation was logged before, makes no change. Returns the logged
  // outcome in both cases.
  using Change = absl::FunctionRef<absl::StatusOr<std::string>(SqlSession&, absl::Time now)>;
  absl::StatusOr<std::string> Make(absl::string_view operation_id, std::string request,
                                   std::string what, Change change);
  // Returns whether an operation whose commit was not answered has been committed. An error if the
  // catalog's history does not contain `began_at`.
  static absl::StatusOr<bool> IsLogged(SqlSession& session, absl::string_view operation_id,
                                       const Revision& began_at);

  // See Prune. Each change prunes too.
  absl::StatusOr<int64_t> PruneIn(SqlSession& session, absl::Time now) const;
  // Deletes some expired versions. Returns none if there are no more, or if the clock is not
  // trusted.
  absl::StatusOr<std::vector<VersionName>> DeleteSomeExpired();

  // Checks that the artifact exists, so that a version may refer to it, and takes it off the list
  // of unreferenced artifacts.
  absl::Status UseArtifact(SqlSession& session, absl::string_view digest);

  const std::shared_ptr<SqlDatabase> database_;
  const std::shared_ptr<Blobs> blobs_;
  const std::shared_ptr<StoreClock> clock_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQL_CATALOG_H_
