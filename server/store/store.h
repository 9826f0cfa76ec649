// The store: names, versions, aliases and finished builds, and the artifacts that versions point
// to.
//
// A name that was deleted is gone for every call, except that its counter is kept: what is
// published under it later goes on counting.
//
// Invariants, which every implementation keeps at every instant, a crash included:
//   1. A version that is visible has its whole artifact on durable storage. (The artifact is
//   durable before the
//      transaction that names it commits.)
//   2. Version numbers of a name are 1, 2, 3 …; a number is never used twice.
//   3. The version and the row of the build that made it appear in one transaction.
//   4. Nothing that a failed or interrupted call wrote is ever visible; start-up removes it.
//   5. An alias points at a version that exists: what it points at cannot be deleted.
//   6. An artifact is kept as long as any version, of whatever name, has its digest.
//
// Blocking: every call may wait for a disk. None is made on an RPC thread.
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
#include "absl/time/time.h"

namespace phimap {

// One version's row.
struct VersionRecord {
  std::string mapping;
  int64_t number = 0;
  // SHA-256 of the artifact, 64 lower-case hexadecimal digits; also the blob's name.
  std::string digest;
  int64_t artifact_size_bytes = 0;
  absl::Time create_time;
  // What lists show without opening the artifact.
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  // "float32" or "float64".
  std::string serving_type;
  std::string mapping_text;
  std::string kernel_text;
  // Came by Import; not built from a stream of this store's server.
  bool imported = false;
};

// A name for a version, which can be moved.
struct AliasRecord {
  std::string mapping;
  std::string name;
  int64_t version = 0;
  // Of that version. Read with the alias, not stored with it.
  std::string digest;
  // Where it pointed before its last move, which is where a rollback leads; 0 if it has not moved.
  // That version may have been given up by now.
  int64_t previous_version = 0;
  // Random. Changes with every move and never comes back, not even when the alias is made anew.
  std::string etag;
  // Of the last move.
  absl::Time move_time;
};

// In the place of an etag: any alias that exists; none that does.
inline constexpr absl::string_view kAnyEtag = "*";
inline constexpr absl::string_view kNoEtag = "none";
// Of one mapping: a mapping is shown with all of them.
inline constexpr int kMaxAliases = 100;

// Whether a version may be deleted that aliases would be rolled back to.
enum class Rollbacks { kKeep, kGiveUp };

// One name's row.
struct MappingRecord {
  std::string name;
  int64_t newest_version = 0;  // 0 when every version was deleted
  int64_t version_count = 0;
  absl::Time create_time;
  // By name.
  std::vector<AliasRecord> aliases = {};
};

// How a build ended. Kept for kBuildRetention after `end_time`, and not longer than its version.
struct BuildRecord {
  std::string mapping;
  std::string build_id;
  // SHA-256 of the canonical spec: a repeated Build with another spec is ALREADY_EXISTS.
  std::string spec_digest;
  int64_t rows_received = 0;
  absl::Time end_time;
  // Done: the version's number, and `error` is OK. Failed or cancelled: 0, and the final error.
  int64_t version = 0;
  absl::Status error;
};

inline constexpr absl::Duration kBuildRetention = absl::Hours(7 * 24);

// What Publish makes visible.
struct PublishRequest {
  // `number`, `digest`, `artifact_size_bytes` and `create_time` are filled in by the store.
  VersionRecord version;
  std::string build_id;
  std::string spec_digest;
  int64_t rows_received = 0;
  // Fencing: the newest version number that the publisher believes in (0 for a name without
  // versions); nullopt publishes after whatever is there. A mismatch is ABORTED and stores nothing.
  std::optional<int64_t> expected_newest;
};

// A stored artifact, read from its start to its end in pieces. It stays readable when its version
// is deleted meanwhile. One thread at a time; must not outlive its store.
class ArtifactReader {
 public:
  virtual ~ArtifactReader() = default;
  virtual int64_t size_bytes() const = 0;
  // The next at most `limit_bytes`; empty at the end. Of bytes that are not those of the digest the
  // last piece is DATA_LOSS instead: nobody gets the whole of a damaged artifact.
  virtual absl::StatusOr<std::string> Next(int64_t limit_bytes) = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // Writes the artifact durably, then the version and its build row in one transaction. When it
  // returns OK the version survives any crash. When it returns an error nothing is visible; an
  // ambiguous failure of the commit itself is resolved by reading back before it returns. A
  // (mapping, build_id) that is recorded already: ALREADY_EXISTS.
  virtual absl::StatusOr<VersionRecord> Publish(const PublishRequest& request,
                                                absl::string_view artifact) = 0;
  // Stores an artifact that was built elsewhere as the next version of `version.mapping`, as
  // durably as Publish. If the mapping has a version with the same artifact already, that one is
  // returned and none is added: importing twice is importing once. The artifact is written in any
  // case, which heals a damaged one. `number`, `digest`, `artifact_size_bytes`, `create_time` and
  // `imported` are filled in by the store.
  virtual absl::StatusOr<VersionRecord> Import(const VersionRecord& version,
                                               absl::string_view artifact) = 0;
  // Records that a build failed or was cancelled. REQUIRES: record.error is not OK.
  virtual absl::Status RecordFailedBuild(const BuildRecord& record) = 0;
  // A build that ended within kBuildRetention.
  virtual absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                               absl::string_view build_id) = 0;

  virtual absl::StatusOr<MappingRecord> GetMapping(absl::string_view name) = 0;
  // Mappings with name > `after`, by name, at most `limit`.
  virtual absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                                  int limit) = 0;
  // Version `number`, or the newest when nullopt.
  virtual absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                                   std::optional<int64_t> number) = 0;
  // Versions with number < `before` (nullopt: all), newest first, at most `limit`.
  virtual absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                                  std::optional<int64_t> before,
                                                                  int limit) = 0;
  // The version that an alias points at now. Unknown mapping or alias: NOT_FOUND.
  virtual absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                          absl::string_view alias) = 0;
  // The artifact with this digest; its SHA-256 is checked against it (DATA_LOSS).
  virtual absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) = 0;
  // `bytes` of it from `offset`, fewer where it ends before. They are not checked against the
  // digest: whoever reads parts checks them by what stands in them. REQUIRES: 0 <= offset, bytes.
  virtual absl::StatusOr<std::string> ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                        int64_t bytes) = 0;
  // The whole in pieces.
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(
      absl::string_view digest) = 0;

  // Points an alias at a version in one step; a new one is made. `etag` is compared in the same
  // step: empty is unconditional, kAnyEtag wants an alias that exists, kNoEtag one that does not,
  // anything else is the etag it must have. A mismatch is ABORTED with the current etag (kNoEtag if
  // there is none) in the metadata "etag". An alias that points there already is left as it is,
  // etag included. RESOURCE_EXHAUSTED over kMaxAliases. REQUIRES: `alias` is an alias name.
  virtual absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                               int64_t version, absl::string_view etag) = 0;
  // `etag` as in SetAlias, and compared first: only then an unknown alias is NOT_FOUND.
  virtual absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                   absl::string_view etag) = 0;
  // Deletes a version with the record of its build, and its artifact if no other version has it.
  // FAILED_PRECONDITION, naming them, while aliases point at it, or pointed at it before their last
  // move and `rollbacks` are to be kept.
  virtual absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                                     Rollbacks rollbacks = Rollbacks::kKeep) = 0;
  // Deletes a mapping with all its versions likewise; its counter is kept. FAILED_PRECONDITION
  // while it has an alias.
  virtual absl::Status DeleteMapping(absl::string_view mapping) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_H_
