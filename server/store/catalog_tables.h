// The tables of a catalog and the statements on them that several calls use, which are the same for
// every database. All statements run within one session. The caller decides which of them belong in
// one transaction. A statement that only one call of the store makes is written in that call
// (store.cc).
#ifndef PHIMAP_SERVER_STORE_CATALOG_TABLES_H_
#define PHIMAP_SERVER_STORE_CATALOG_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"

namespace phimap {

// A change of a catalog.
struct Operation {
  // Chosen by the caller, or NewOperationId().
  std::string id;
  // The change with its arguments, to recognise an id that is used for another change.
  std::string request;
  // The change in words, for errors: "version 3 of \"letters\" was deleted".
  std::string what;
};

// Returns a random id.
std::string NewOperationId();

// Returns the earliest end time of builds that are still kept.
int64_t RetentionStartMicros(absl::Time now);

// Cheap to make; must not outlive its session. Errors: those of Store and of the database.
class CatalogTables {
 public:
  explicit CatalogTables(SqlSession& session) : session_(session) {}

  absl::StatusOr<Revision> CurrentRevision();
  // See Store.
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since);
  absl::StatusOr<bool> IsInHistory(const Revision& revision);
  // Increments the revision, because the mapping's names change, and stores it as the mapping's
  // revision.
  absl::Status CountChange(absl::string_view mapping);

  // Mappings, Versions and Aliases return the rows that the rest of their SELECT selects, as in
  // "WHERE mapping = $1 ORDER BY number". The rest for mappings is the condition, whose columns are
  // those of `m`, and what follows it: "m.name = $1 GROUP BY m.name". It selects no deleted
  // mapping, and their aliases are left out.
  absl::StatusOr<std::vector<MappingRecord>> Mappings(absl::string_view rest,
                                                      absl::Span<const SqlValue> values);
  absl::StatusOr<std::vector<VersionRecord>> Versions(absl::string_view rest,
                                                      absl::Span<const SqlValue> values);
  absl::StatusOr<std::vector<AliasRecord>> Aliases(absl::string_view rest,
                                                   absl::Span<const SqlValue> values);

  absl::StatusOr<MappingRecord> GetMapping(absl::string_view name);
  // Marks the mapping as deleted. Its counter of version numbers is kept.
  absl::Status MarkMappingDeleted(absl::string_view mapping);

  // Returns the next version number of the mapping, which is created if it does not exist, or
  // restored if it was deleted.
  absl::StatusOr<int64_t> TakeNumber(absl::string_view mapping, absl::Time now);
  absl::Status InsertVersion(const VersionRecord& version);
  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number);
  // Returns 0 if the mapping has no version.
  absl::StatusOr<int64_t> NewestVersion(absl::string_view mapping);
  // Deletes one version, or all if `number` is nullopt, with their builds. Lists their artifacts as
  // unreferenced if no version refers to them any more.
  absl::Status DeleteVersions(absl::string_view mapping, std::optional<int64_t> number);

  absl::StatusOr<std::optional<int64_t>> ArtifactSizeBytes(absl::string_view digest);
  // List adds the artifact to the list of unreferenced artifacts, with the present time, unless a
  // version refers to it or it is already listed. Unlist removes it from the list.
  absl::Status List(absl::string_view digest);
  absl::Status Unlist(absl::string_view digest);

  absl::StatusOr<std::optional<AliasRecord>> FindAlias(absl::string_view mapping,
                                                       absl::string_view alias);
  // Returns the aliases of the mappings from `first` to `last`, sorted by mapping and name.
  absl::StatusOr<std::vector<AliasRecord>> AliasesBetween(absl::string_view first,
                                                          absl::string_view last);

  // A version with a ttl expires a ttl after its last use. A version does not expire while an alias
  // points at it or would point at it after a rollback. Once no alias keeps it any longer, its ttl
  // begins anew.
  //
  // SetTtl makes the version expire `ttl` after its last use, which is `now`, or never if `ttl` is
  // infinite.
  absl::Status SetTtl(absl::string_view mapping, int64_t number, absl::Duration ttl,
                      absl::Time now);
  // Records a use at `now`. No-op for a version that has no ttl or does not exist.
  absl::Status UseVersion(absl::string_view mapping, int64_t number, absl::Time now);

  absl::Status InsertBuild(const BuildRecord& build);
  absl::Status DeleteBuild(absl::string_view mapping, absl::string_view build_id);
  absl::StatusOr<bool> HasBuild(absl::string_view mapping, absl::string_view build_id,
                                absl::Time now);
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping, absl::string_view build_id,
                                       absl::Time now);

  // The log of changes by operation id, which tells how a change ended whose answer was lost. Each
  // change adds its row in its own transaction, so that the row is there exactly if the change was
  // made.
  //
  // FindOperation returns the result of the change with this id, nullopt if it was not made.
  // ALREADY_EXISTS (OPERATION_ID_REUSED) if the id is that of another request.
  absl::StatusOr<std::optional<std::string>> FindOperation(const Operation& operation);
  absl::StatusOr<bool> HasOperation(absl::string_view id);
  // REQUIRES: the log does not contain the id.
  absl::Status AddOperation(const Operation& operation, absl::string_view outcome, absl::Time now);

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
