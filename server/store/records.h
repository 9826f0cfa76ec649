// The rows of the catalog, as values.
#ifndef PHIMAP_SERVER_STORE_RECORDS_H_
#define PHIMAP_SERVER_STORE_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// A version by its mapping and number.
struct VersionName {
  std::string mapping;
  int64_t number = 0;

  friend auto operator<=>(const VersionName& a, const VersionName& b) = default;
};

// One version's row.
struct VersionRecord {
  std::string mapping;
  int64_t number = 0;
  // SHA-256 of the artifact, 64 lower-case hexadecimal digits; also the blob's name.
  std::string digest;
  int64_t artifact_size_bytes = 0;
  absl::Time create_time;
  // Facts that lists show without opening the artifact.
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  // "float32" or "float64".
  std::string serving_type;
  std::string mapping_text;
  std::string kernel_text;
  // Came by Import; not built from a stream of this store's server.
  bool imported = false;
  // Format of the artifact of a version that is about to be stored, which all live servers
  // must read. Not kept.
  uint32_t artifact_format = 0;
  // Time for which the version lives after its last use; infinite: for ever.
  absl::Duration ttl = absl::InfiniteDuration();
  // When it may be deleted unless it is used before: infinite without a ttl, and while an alias
  // points at it or would be rolled back to it.
  absl::Time expire_time = absl::InfiniteFuture();
};

// Range of a finite ttl. The minimum is long compared with the period in which uses are recorded;
// the maximum keeps times within 64 bits of microseconds.
inline constexpr absl::Duration kLeastTtl = absl::Minutes(1);
inline constexpr absl::Duration kLargestTtl = absl::Hours(24 * 36500);
// A use is recorded only if that postpones the expiry by at least this share of the ttl.
inline constexpr int kRecordedShareOfTtl = 10;

// A name for a version, which can be moved.
struct AliasRecord {
  std::string mapping;
  std::string name;
  int64_t version = 0;
  // The digest of that version. It is joined in when the alias is read, not stored with it.
  std::string digest;
  // The version it pointed at before its last move, which is where a rollback leads; 0 if it has
  // not moved. The previous version may have been given up by now.
  int64_t previous_version = 0;
  // Random. Changes with every move and never comes back, not even when the alias is made anew.
  std::string etag;
  // When it was last moved.
  absl::Time move_time;
};

// In the place of an etag: any alias that exists; none that does.
inline constexpr absl::string_view kAnyEtag = "*";
inline constexpr absl::string_view kNoEtag = "none";
// Maximum number of aliases of a mapping. A mapping is always shown with all of them.
inline constexpr int kMaxAliases = 100;

// Whether a version may be deleted that aliases would be rolled back to.
enum class Rollbacks { kKeep, kGiveUp };
// Whether a mapping is deleted with the versions that it has.
enum class Occupied { kDelete, kRefuse };

// One name's row.
struct MappingRecord {
  std::string name;
  int64_t newest_version = 0;  // 0 when every version was deleted
  int64_t version_count = 0;
  absl::Time create_time;
  // By name.
  std::vector<AliasRecord> aliases = {};
};

// Owner of a build, and the number of the claim by which it has it (build_claims.h).
struct BuildClaimant {
  std::string server_id;
  int64_t epoch = 0;

  friend bool operator==(const BuildClaimant& a, const BuildClaimant& b) = default;
};

// The end of a build. Kept for kBuildRetention after `end_time`, and not longer than its version.
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
  // When it is recorded: as in PublishRequest. Not stored.
  std::optional<BuildClaimant> claimant = std::nullopt;
};

inline constexpr absl::Duration kBuildRetention = absl::Hours(7 * 24);

// A version and the names that Publish makes visible.
struct PublishRequest {
  // `number`, `digest`, `artifact_size_bytes`, `create_time`, `expire_time` and `artifact_format`
  // are filled in by the store.
  VersionRecord version;
  std::string build_id;
  std::string spec_digest;
  int64_t rows_received = 0;
  // Fencing: the newest version number that the publisher believes in (0 for a name without
  // versions); nullopt publishes in any case. A mismatch is ABORTED and stores nothing.
  std::optional<int64_t> expected_newest;
  // Fencing: the required owner of the build's claim, which ends with this; nullopt: builds are not
  // claimed. A mismatch is ABORTED (BUILD_TAKEN_OVER) and stores nothing.
  std::optional<BuildClaimant> claimant = std::nullopt;
};

// A point in the history of a catalog: each change has the next number, in the order of commits.
struct Revision {
  // Random; changed by events that break the history, such as a restored backup. Numbers of
  // different epochs do not compare.
  std::string epoch;
  int64_t number = 0;

  friend bool operator==(const Revision& a, const Revision& b) = default;
};

// Target of an alias.
struct AliasTarget {
  std::string alias;
  int64_t version = 0;
};

// Meaning of the names of one mapping.
struct MappingNames {
  std::string mapping;
  // Existing versions, ascending. None: every version was deleted, or the whole mapping.
  std::vector<int64_t> versions = {};
  // By name.
  std::vector<AliasTarget> aliases = {};
  // Digests of `versions`, in their order.
  std::vector<std::string> digests = {};

  // 0 if there is none.
  int64_t newest_version() const { return versions.empty() ? 0 : versions.back(); }
};

// Changes of names since a revision.
struct NameChanges {
  // After these changes.
  Revision revision;
  // Whether `mappings` is complete, because the epoch is another one: mappings that are missing are
  // gone.
  bool whole = false;
  // Present state of each: a mapping that changed several times is there once. By name.
  std::vector<MappingNames> mappings = {};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_RECORDS_H_
