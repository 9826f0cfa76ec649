// The store: names, versions, aliases and finished builds, and the artifacts that versions point
// to.
//
// No call finds a name that was deleted. But the name's counter of version numbers is kept: the
// numbers continue if the name is used again.
//
// Invariants of every implementation, at every instant, even across a crash:
//   1. A version that is visible has its whole artifact on durable storage. (The artifact is
//      durable before the transaction that refers to it commits.)
//   2. Version numbers of a name are 1, 2, 3 …; a number is never used twice.
//   3. The version and the row of the build that made it appear in one transaction.
//   4. Nothing that a failed or interrupted call wrote is ever visible; it is garbage.
//   5. An alias points at an existing version, which cannot be deleted.
//   6. An artifact is kept while any version, under any name, has its digest.
//
// Operation ids. A caller may give a change an id of its own choice, 1 to 128 letters, digits and
// "-". The id and the change's result are stored in the change's transaction and kept for
// kOperationRetention. Repeating the change with its id makes no further change and returns the
// first result, on whichever server; ALREADY_EXISTS (OPERATION_ID_REUSED) if the id was that of
// another change. Changes that failed are not stored. An empty id stands for a new random one.
//
// Blocking: every call may wait for a disk, so calls are never made on an event loop's thread.
// Thread-safety: all methods may be called from any thread.
// Errors: NOT_FOUND (unknown name, version, alias or build), ALREADY_EXISTS, ABORTED (fencing
// lost), RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION (read-only or locked directory),
// DATA_LOSS (stored bytes are damaged), UNAVAILABLE.
#ifndef PHIMAP_SERVER_STORE_STORE_H_
#define PHIMAP_SERVER_STORE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/blobs.h"
#include "server/store/build_claims.h"
#include "server/store/records.h"

namespace phimap {

class Store {
 public:
  virtual ~Store() = default;

  // Writes the artifact durably, then the version and its build row in one transaction. After OK
  // the version survives any crash. After an error nothing is visible, except
  // after COMMIT_IN_DOUBT. ALREADY_EXISTS if this (mapping, build_id) is
  // recorded already.
  virtual absl::StatusOr<VersionRecord> Publish(const PublishRequest& request,
                                                absl::string_view artifact) = 0;
  // Stores an artifact that was built elsewhere as the next version of `version.mapping`, as
  // durably as Publish. If the mapping already has a version with the same artifact, returns that
  // version and adds none: a second import only removes the version's ttl. The artifact is written
  // in any case, which repairs a damaged one. The store fills in `number`, `digest`,
  // `artifact_size_bytes`, `create_time` and `imported`.
  virtual absl::StatusOr<VersionRecord> Import(const VersionRecord& version,
                                               absl::string_view artifact) = 0;
  // Records that a build failed or was cancelled. REQUIRES: record.error is not OK.
  virtual absl::Status RecordFailedBuild(const BuildRecord& record) = 0;
  // Returns a build that ended within kBuildRetention.
  virtual absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                               absl::string_view build_id) = 0;

  // Returns the changes of names since a revision. For an empty Revision(), returns all names.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since) = 0;
  // Returns whether the catalog's history contains the revision. True, too, for revisions that are
  // so old that their ids are not kept (the last 100,000 are).
  virtual absl::StatusOr<bool> IsInHistory(const Revision& revision) = 0;

  virtual absl::StatusOr<MappingRecord> GetMapping(absl::string_view name) = 0;
  // Returns at most `limit` mappings with a name > `after`, sorted by name.
  virtual absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                                  int limit) = 0;
  // Returns version `number`, or the newest version if nullopt.
  virtual absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                                   std::optional<int64_t> number) = 0;
  // Returns at most `limit` versions with a number < `before` (nullopt: all), newest first.
  virtual absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                                  std::optional<int64_t> before,
                                                                  int limit) = 0;
  // Returns the version that an alias points at now. NOT_FOUND for an unknown mapping or alias.
  virtual absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                          absl::string_view alias) = 0;
  // Returns the version whose digest begins with `digest`, 1 to 64 hexadecimal digits, or the
  // newest if several versions have that digest. NOT_FOUND if there is none, and INVALID_ARGUMENT
  // (DIGEST_AMBIGUOUS) if different digests begin with `digest`.
  virtual absl::StatusOr<VersionRecord> GetVersionByDigest(absl::string_view mapping,
                                                           absl::string_view digest) = 0;
  // Returns the artifact with this digest. DATA_LOSS if its SHA-256 differs.
  virtual absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) = 0;
  // Reads the artifact of a version that was looked up. Asks the catalog only if the artifact
  // cannot be read, so a cached artifact is available even while the database cannot be reached.
  virtual absl::StatusOr<std::string> ReadArtifactOf(const VersionRecord& version) {
    return ReadArtifact(version.digest);
  }
  // Reads `bytes` bytes of the artifact from `offset`, or fewer if the artifact ends before. The
  // bytes are not checked against the digest. Instead, readers use the checksums that an artifact
  // contains for its parts. REQUIRES: 0 <= offset, bytes.
  virtual absl::StatusOr<std::string> ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                        int64_t bytes) = 0;
  // Reads the whole artifact in pieces.
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(
      absl::string_view digest) = 0;

  // Points an alias at a version in one step, creating it if needed. `etag` is compared in the same
  // step: empty is unconditional, kAnyEtag requires an existing alias, kNoEtag requires that there
  // is none, and any other value must equal the alias's etag. A mismatch is ABORTED with the
  // current etag (kNoEtag if there is none) in the metadata "etag". An alias that already points at
  // the version is left unchanged, etag included. RESOURCE_EXHAUSTED over kMaxAliases. REQUIRES:
  // `alias` is an alias name.
  virtual absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                               int64_t version, absl::string_view etag,
                                               absl::string_view operation_id = {}) = 0;
  // `etag` is compared as in SetAlias: a mismatch is ABORTED. If the etag is accepted, an unknown
  // alias is NOT_FOUND.
  virtual absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                   absl::string_view etag, absl::string_view operation_id = {}) = 0;
  // Deletes a version with the record of its build. If no other version has its artifact, the
  // artifact becomes garbage, which is collected after a grace time. FAILED_PRECONDITION, naming
  // the aliases, while aliases point at the version or, unless `rollbacks` is kGiveUp, pointed at
  // it before their last move.
  virtual absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                                     Rollbacks rollbacks = Rollbacks::kKeep,
                                     absl::string_view operation_id = {}) = 0;
  // Deletes a mapping with all its versions; its counter of version numbers is kept.
  // FAILED_PRECONDITION while it has an alias, or has versions and `occupied` is kRefuse.
  virtual absl::Status DeleteMapping(absl::string_view mapping,
                                     Occupied occupied = Occupied::kDelete,
                                     absl::string_view operation_id = {}) = 0;

  // Sets how long a version lives after its last use, beginning now. FAILED_PRECONDITION with the
  // reason TTL_TOO_SHORT if this would shorten its life: neither is `ttl` at least the version's,
  // nor would the version expire later than it does. REQUIRES: `ttl` is infinite, or from kLeastTtl
  // to kLargestTtl.
  virtual absl::StatusOr<VersionRecord> KeepVersion(absl::string_view mapping, int64_t number,
                                                    absl::Duration ttl,
                                                    absl::string_view operation_id = {}) = 0;
  // Postpones the expiry of the versions in `used` that have a ttl, as if they were used now,
  // unless the change is less than a tenth of the ttl. Ignores unknown versions. May be lost in a
  // crash.
  virtual absl::Status RecordUses(const std::vector<VersionName>& used) = 0;
  // Deletes expired versions as DeleteVersion does, and mappings that have no version left. Returns
  // the deleted versions by name and number. Deletes none while the clock is not trusted.
  virtual absl::StatusOr<std::vector<VersionName>> DeleteExpired() = 0;

  // Returns the ownership of builds in a store that several servers share. Null if no other process
  // uses this store, so that every build belongs to this process.
  virtual BuildClaims* claims() { return nullptr; }
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_H_
