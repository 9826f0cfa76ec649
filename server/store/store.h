// The store: names, versions, aliases and finished builds, and the artifacts that versions point
// to.
//
// No call finds a name that was deleted. But the name's counter of version numbers is kept: the
// numbers continue if the name is used again.
//
// There is one store for all databases: its statements are the same for each (sql_database.h), and
// the artifacts are in any kind of Blobs (blobs.h).
//
// Invariants, at every instant, even across a crash:
//   1. A version that is visible has its whole artifact on durable storage: Publish writes the blob
//      durably before the transaction that refers to it.
//   2. Version numbers of a name are 1, 2, 3 …; a number is never used twice.
//   3. The version and the row of the build that made it appear in one transaction.
//   4. Nothing that a failed or interrupted call wrote is ever visible, because only the
//      transaction makes anything visible. No version refers to a blob that a failed Publish wrote;
//      the garbage collector finds it (garbage_collector.h).
//   5. An alias points at an existing version, which cannot be deleted.
//   6. An artifact is kept while any version, under any name, has its digest. A deletion lists
//      artifacts as unreferenced; the garbage collector removes them after a grace time. If it
//      removes the blob of a publish or an import before the commit, the blob is written again.
//
// Each change is one transaction and, if it changes names, increments the revision. Several
// processes may change one store: their changes are serialized, and revisions are in the order of
// the commits.
//
// Commits in doubt. If the answer of a commit is lost, the change looks for its own row in the log
// of operations. If it cannot look, or if the catalog's history is not the one that the change
// began in, it returns UNAVAILABLE with the reason COMMIT_IN_DOUBT.
//
// Times are those of the database's clock (store_clock.h).
//
// Origins. Each change gets a ChangeOrigin, of which the change's transaction writes an entry of
// the audit (audit.h).
//
// Operation ids. A caller may give a change an id of its own choice (ChangeOrigin::operation_id), 1
// to 128 letters, digits and "-". The id and the change's result are stored in the change's
// transaction and kept for kOperationRetention. Repeating the change with its id makes no further
// change and returns the first result, on whichever server; ALREADY_EXISTS (OPERATION_ID_REUSED) if
// the id was that of another change. Changes that failed are not stored. An empty id stands for a
// new random one.
//
// Blocking: every call may wait for a disk, a network or another writer, so calls are never made on
// an event loop's thread.
// Thread-safety: all methods may be called from any thread.
// Errors: NOT_FOUND (unknown name, version, alias or build), ALREADY_EXISTS, ABORTED (fencing
// lost), RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION (read-only or locked directory),
// DATA_LOSS (stored bytes are damaged), UNAVAILABLE, and those of the database (sql_database.h).
#ifndef PHIMAP_SERVER_STORE_STORE_H_
#define PHIMAP_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/change_origin.h"
#include "server/observe/metrics.h"
#include "server/store/audit.h"
#include "server/store/blobs.h"
#include "server/store/build_claims.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"
#include "server/store/store_clock.h"

namespace phimap {

// Virtual functions are those that tests of the store's readers replace
// (tests/server/registry/memory_store.h).
class Store {
 public:
  // REQUIRES: `database` has the catalog's tables. `clock` is that of the database. `claims` is
  // null if no other server shares the store.
  Store(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
        std::shared_ptr<StoreClock> clock = std::make_shared<StoreClock>(),
        std::unique_ptr<BuildClaims> claims = nullptr);
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // From now on, counts and times the calls. `metrics` must outlive the store. To be called before
  // other threads use the store.
  void MeterWith(const StoreMetrics& metrics) { metrics_ = &metrics; }

  // Writes the artifact durably, then the version and its build row in one transaction. After OK
  // the version survives any crash. After an error nothing is visible, except
  // after COMMIT_IN_DOUBT. ALREADY_EXISTS if this (mapping, build_id) is
  // recorded already.
  absl::StatusOr<VersionRecord> Publish(const PublishRequest& request, absl::string_view artifact);
  // Stores an artifact that was built elsewhere as the next version of `version.mapping`, as
  // durably as Publish. If the mapping already has a version with the same artifact, returns that
  // version and adds none: a second import only removes the version's ttl. The artifact is written
  // in any case, which repairs a damaged one. The store fills in `number`, `digest`,
  // `artifact_size_bytes`, `create_time` and `imported`.
  absl::StatusOr<VersionRecord> Import(const VersionRecord& version, absl::string_view artifact,
                                       const ChangeOrigin& origin = {});
  // Records that a build failed or was cancelled, at `record.end_time` or, if that is unset
  // (absl::Time()), at the time of the database's clock. `origin`: who ordered the build;
  // `cancelled_by`: who cancelled it, or null. REQUIRES: record.error is not OK.
  absl::Status RecordFailedBuild(const BuildRecord& record, const ChangeOrigin& origin = {},
                                 const ChangeOrigin* cancelled_by = nullptr);
  // Returns a build that ended within kBuildRetention.
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping, absl::string_view build_id);

  // Returns the changes of names since a revision. For an empty Revision(), returns all names.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since);
  // Returns whether the catalog's history contains the revision. True, too, for revisions that are
  // so old that their ids are not kept (the last 100,000 are).
  virtual absl::StatusOr<bool> IsInHistory(const Revision& revision);

  absl::StatusOr<MappingRecord> GetMapping(absl::string_view name);
  // Returns at most `limit` mappings with a name > `after`, sorted by name.
  virtual absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                                  int limit);
  // Returns version `number`, or the newest version if nullopt.
  virtual absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                                   std::optional<int64_t> number);
  // Returns at most `limit` versions with a number < `before` (nullopt: all), newest first.
  virtual absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                                  std::optional<int64_t> before,
                                                                  int limit);
  // Returns the version that an alias points at now. NOT_FOUND for an unknown mapping or alias.
  virtual absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                          absl::string_view alias);
  // Returns the version whose digest begins with `digest`, 1 to 64 hexadecimal digits, or the
  // newest if several versions have that digest. NOT_FOUND if there is none, and INVALID_ARGUMENT
  // (DIGEST_AMBIGUOUS) if different digests begin with `digest`.
  virtual absl::StatusOr<VersionRecord> GetVersionByDigest(absl::string_view mapping,
                                                           absl::string_view digest);
  // Returns the artifact with this digest. DATA_LOSS if its SHA-256 differs.
  virtual absl::StatusOr<std::string> ReadArtifact(absl::string_view digest);
  // Reads the artifact of a version that was looked up. Asks the catalog only if the artifact
  // cannot be read, so a cached artifact is available even while the database cannot be reached.
  virtual absl::StatusOr<std::string> ReadArtifactOf(const VersionRecord& version);
  // Reads `bytes` bytes of the artifact from `offset`, or fewer if the artifact ends before. The
  // bytes are not checked against the digest. Instead, readers use the checksums that an artifact
  // contains for its parts. REQUIRES: 0 <= offset, bytes.
  absl::StatusOr<std::string> ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                int64_t bytes);
  // Reads the whole artifact in pieces. Only the call that opens the artifact is metered, not the
  // reads that follow.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(absl::string_view digest);

  // Points an alias at a version in one step, creating it if needed. `etag` is compared in the same
  // step: empty is unconditional, kAnyEtag requires an existing alias, kNoEtag requires that there
  // is none, and any other value must equal the alias's etag. A mismatch is ABORTED with the
  // current etag (kNoEtag if there is none) in the metadata "etag". An alias that already points at
  // the version is left unchanged, etag included. RESOURCE_EXHAUSTED over kMaxAliases. REQUIRES:
  // `alias` is an alias name.
  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag,
                                       const ChangeOrigin& origin = {});
  // `etag` is compared as in SetAlias: a mismatch is ABORTED. If the etag is accepted, an unknown
  // alias is NOT_FOUND.
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag, const ChangeOrigin& origin = {});
  // Deletes a version with the record of its build. If no other version has its artifact, the
  // artifact becomes garbage, which is collected after a grace time. FAILED_PRECONDITION, naming
  // the aliases, while aliases point at the version or, unless `rollbacks` is kGiveUp, pointed at
  // it before their last move.
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                             Rollbacks rollbacks = Rollbacks::kKeep,
                             const ChangeOrigin& origin = {});
  // Deletes the version that GetVersionByDigest finds, and returns its number. An operation that is
  // repeated returns the number that it deleted first, even if the digest means another version
  // now.
  absl::StatusOr<int64_t> DeleteVersionByDigest(absl::string_view mapping, absl::string_view digest,
                                                Rollbacks rollbacks = Rollbacks::kKeep,
                                                const ChangeOrigin& origin = {});
  // Deletes a mapping with all its versions; its counter of version numbers is kept.
  // FAILED_PRECONDITION while it has an alias, or has versions and `occupied` is kRefuse.
  absl::Status DeleteMapping(absl::string_view mapping, Occupied occupied = Occupied::kDelete,
                             const ChangeOrigin& origin = {});

  // Sets how long a version lives after its last use, beginning now. FAILED_PRECONDITION with the
  // reason TTL_TOO_SHORT if this would shorten its life: neither is `ttl` at least the version's,
  // nor would the version expire later than it does. REQUIRES: `ttl` is infinite, or from kLeastTtl
  // to kLargestTtl.
  absl::StatusOr<VersionRecord> KeepVersion(absl::string_view mapping, int64_t number,
                                            absl::Duration ttl, const ChangeOrigin& origin = {});
  // Postpones the expiry of the versions in `used` that have a ttl, as if they were used now,
  // unless the change is less than a tenth of the ttl. Ignores unknown versions. May be lost in a
  // crash.
  absl::Status RecordUses(const std::vector<VersionName>& used);
  // Deletes expired versions as DeleteVersion does, and mappings that have no version left. Returns
  // the deleted versions by name and number. Deletes none while the clock is not trusted.
  absl::StatusOr<std::vector<VersionName>> DeleteExpired();

  // The audit (audit.h). ListAudit returns at most `limit` entries. RecordRefusal adds an entry
  // about a change that was not made; its number and time are filled in.
  absl::StatusOr<std::vector<AuditEntry>> ListAudit(const AuditQuery& query, int limit);
  absl::Status RecordRefusal(const AuditEntry& entry);
  // From now on, no change is made while `check` returns an error, which the change returns; after
  // each change that was made, `changed` is called. To be called before other threads use the
  // store.
  void CopyAuditBy(std::function<absl::Status()> check, std::function<void()> changed) {
    check_audit_ = std::move(check);
    audit_changed_ = std::move(changed);
  }
  // Says before a version is computed whether it could be added: UNAVAILABLE
  // (AUDIT_LOG_NOT_WRITABLE), or RESOURCE_EXHAUSTED (STORE_SHARE_REACHED) if the caller's versions
  // take as much of the store as they may. Publish and Import check both too, the share in the
  // transaction that adds a version.
  absl::Status CheckCanAdd(const ChangeOrigin& origin);

  // Removes builds that ended more than kBuildRetention ago, and returns their number; removes
  // operations that ended more than kOperationRetention ago. Changes no names, and therefore not
  // the revision. Removes nothing while the clock is not trusted. Each change prunes too. Not
  // metered.
  absl::StatusOr<int64_t> Prune();

  // Returns the ownership of builds in a store that several servers share. Null if no other process
  // uses this store, so that every build belongs to this process. Claims are not metered, because
  // their frequent renewals would dominate the metrics.
  BuildClaims* claims() { return claims_.get(); }

  // The parts of the store.
  const std::shared_ptr<SqlDatabase>& database() const { return database_; }
  const std::shared_ptr<Blobs>& blobs() const { return blobs_; }
  const std::shared_ptr<StoreClock>& clock() const { return clock_; }

 protected:
  // Makes a store without a database, for tests, which replace all that they call.
  Store() = default;

 private:
  using Change =
      absl::FunctionRef<absl::StatusOr<std::string>(SqlSession&, absl::Time now, AuditEntry&)>;
  using Insert = absl::FunctionRef<absl::StatusOr<VersionRecord>()>;

  // Makes a deletion. A store on a disk that may be full makes room for it.
  virtual absl::Status Delete(absl::FunctionRef<absl::Status()> remove) { return remove(); }

  // Returns the result of `read`, a function of the session and the clock's time that returns a
  // StatusOr, in one snapshot; counts and times it as `operation`.
  template <typename Function>
  auto Read(StoreOperation operation, const Function& read);
  // Like Read, without counting it.
  template <typename Function>
  auto ReadOnce(const Function& read);

  // Makes a change, logs it and writes its entry of the audit, all in one transaction. `change`
  // gets the time, fills in what the entry says of the change, and returns the outcome to be
  // logged. If it leaves the entry without a mapping, nothing was changed, and there is no entry.
  // If the operation was logged before, makes no change. Returns the logged outcome in both cases.
  // `request` is the change with its arguments, and `what` the change in words (Operation in
  // catalog_tables.h).
  absl::StatusOr<std::string> Make(const ChangeOrigin& origin, std::string request,
                                   std::string what, Change change);
  // Deletes the version whose number `find` returns; `which` names it in the log and in errors. The
  // outcome is its number; releases before 0.2 logged an empty one.
  absl::StatusOr<std::string> DeleteFound(
      absl::string_view mapping, const std::string& which,
      absl::FunctionRef<absl::StatusOr<int64_t>(SqlSession&)> find, Rollbacks rollbacks,
      const ChangeOrigin& origin);
  // See Prune.
  absl::StatusOr<int64_t> PruneIn(SqlSession& session, absl::Time now) const;

  // Writes the artifact durably, then inserts the row that refers to it.
  absl::StatusOr<VersionRecord> Add(const std::string& digest, absl::string_view artifact,
                                    Insert insert);
  // Inserts the version and its build, or finds the version of the mapping that has this digest or
  // inserts one, each in one transaction. UNAVAILABLE with the reason ARTIFACT_REMOVED means that
  // the blob has been removed, and must be written again.
  absl::StatusOr<VersionRecord> InsertBuilt(const PublishRequest& request, VersionRecord version);
  absl::StatusOr<VersionRecord> InsertImported(const VersionRecord& imported,
                                               const ChangeOrigin& origin);
  // Checks that the artifact exists, so that a version may refer to it, and takes it off the list
  // of unreferenced artifacts.
  absl::Status UseArtifact(SqlSession& session, absl::string_view digest);
  // NOT_FOUND if no version has this digest.
  absl::StatusOr<int64_t> ArtifactSizeBytes(absl::string_view digest);
  // Returns `error`, unless the version was deleted meanwhile. In that case, returns the error of
  // looking up the version, because a deleted blob is not damaged.
  absl::Status UnlessDeleted(absl::string_view digest, const absl::Status& error);

  // Deletes some expired versions. Returns none if there are no more, or if the clock is not
  // trusted.
  absl::StatusOr<std::vector<VersionName>> DeleteSomeExpired();

  const std::shared_ptr<SqlDatabase> database_;
  const std::shared_ptr<Blobs> blobs_;
  const std::shared_ptr<StoreClock> clock_;
  const std::unique_ptr<BuildClaims> claims_;
  const StoreMetrics* metrics_ = nullptr;
  // May be empty.
  std::function<absl::Status()> check_audit_;
  std::function<void()> audit_changed_;
};

// Informs a server of other servers' changes in the store that they share. Used by one thread at a
// time.
class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;

  // Returns when there may be a change, or after `limit`. Notifications can get lost, so a caller
  // that needs certainty must also call ChangesSince after `limit`.
  virtual void Await(absl::Duration limit) = 0;
  // Like Store::ChangesSince, but returns UNAVAILABLE after a few tenths of a second instead of
  // many seconds, because a half-open connection must not hide other servers' changes.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_H_
