// The rows of the catalog, as values.
#ifndef PHIMAP_SERVER_STORE_RECORDS_H_
#define PHIMAP_SERVER_STORE_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/change_origin.h"

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
  // The column mapping_text of the catalog, which is older than this name.
  std::string spec_text;
  std::string kernel_text;
  // The version came by Import, and was not built from a stream by a server of this store.
  bool imported = false;
  // Format of the artifact of a version that is about to be stored. All live servers must be able
  // to read it. Not stored.
  uint32_t artifact_format = 0;
  // Time for which the version lives after its last use. Infinite means for ever.
  absl::Duration ttl = absl::InfiniteDuration();
  // Time at which the version may be deleted unless it is used before. Infinite if the version has
  // no ttl, and while an alias points at it or would point at it after a rollback.
  absl::Time expire_time = absl::InfiniteFuture();
  // The name of the caller who built, trained or imported it; "" if it has none.
  std::string made_by = {};
};

// Range of a finite ttl. The minimum is much longer than the interval at which uses are recorded.
// With the maximum, times in microseconds fit into 64 bits.
inline constexpr absl::Duration kLeastTtl = absl::Minutes(1);
inline constexpr absl::Duration kLargestTtl = absl::Hours(24 * 36500);
// A use is recorded only if that postpones the expiry by at least 1/kRecordedShareOfTtl of the ttl.
inline constexpr int kRecordedShareOfTtl = 10;

// A movable name for a version.
struct AliasRecord {
  std::string mapping;
  std::string name;
  int64_t version = 0;
  // Digest of `version`, read together with the alias but not stored with it.
  std::string digest;
  // The version that the alias pointed at before its last move, and would point at after a
  // rollback; 0 if the alias has not moved. That version may have been deleted by now.
  int64_t previous_version = 0;
  // A random text that changes with every move and never recurs, not even if the alias is deleted
  // and created again.
  std::string etag;
  // Time of the alias's last move.
  absl::Time move_time;
  // The name of the caller who moved it last; "" if it has none.
  std::string moved_by = {};
};

// Special values in place of an etag: kAnyEtag requires that the alias exists, and kNoEtag that it
// does not exist.
inline constexpr absl::string_view kAnyEtag = "*";
inline constexpr absl::string_view kNoEtag = "none";
// Maximum number of aliases of a mapping. A mapping is always shown with all of them.
inline constexpr int kMaxAliases = 100;

// Whether versions that aliases would point at after a rollback must be kept, or may be deleted.
enum class Rollbacks { kKeep, kGiveUp };
// Whether a mapping that has versions is deleted with them, or not deleted.
enum class Occupied { kDelete, kRefuse };

// A mapping's row.
struct MappingRecord {
  std::string name;
  int64_t newest_version = 0;  // 0 when every version was deleted
  int64_t version_count = 0;
  absl::Time create_time;
  // Sorted by name.
  std::vector<AliasRecord> aliases = {};
};

// The server that owns a build, and the epoch of its claim on the build (build_claims.h).
struct BuildClaimant {
  std::string server_id;
  int64_t epoch = 0;

  friend bool operator==(const BuildClaimant& a, const BuildClaimant& b) = default;
};

// The record of an ended build. Kept for kBuildRetention after `end_time`, and not longer than the
// build's version.
struct BuildRecord {
  std::string mapping;
  std::string build_id;
  // SHA-256 of the canonical spec. A repeated Build with another spec is ALREADY_EXISTS.
  std::string spec_digest;
  int64_t rows_received = 0;
  absl::Time end_time;
  // Number of the version if the build is done, and 0 if it failed or was cancelled. `error` is OK
  // if the build is done, and otherwise the final error.
  int64_t version = 0;
  absl::Status error;
  // The required owner of the build's claim, as in PublishRequest. Not stored.
  std::optional<BuildClaimant> claimant = std::nullopt;
};

inline constexpr absl::Duration kBuildRetention = absl::Hours(7 * 24);
// Time for which an operation's id and result are kept.
inline constexpr absl::Duration kOperationRetention = absl::Hours(7 * 24);

// A version and the names that Publish makes visible.
struct PublishRequest {
  // `number`, `digest`, `artifact_size_bytes`, `create_time`, `expire_time` and `artifact_format`
  // are filled in by the store.
  VersionRecord version;
  std::string build_id;
  std::string spec_digest;
  int64_t rows_received = 0;
  // Fencing: the newest version number that the publisher expects (0 for a name without versions).
  // If nullopt, the version is published in any case. A mismatch is ABORTED and stores nothing.
  std::optional<int64_t> expected_newest;
  // Fencing: the required owner of the build's claim, which ends with this transaction. nullopt if
  // builds are not claimed. A mismatch is ABORTED (BUILD_TAKEN_OVER) and stores nothing.
  std::optional<BuildClaimant> claimant = std::nullopt;
  // Who ordered the build.
  ChangeOrigin origin = {};
};

// A point in the history of a catalog: each change has the next number, in the order of commits.
struct Revision {
  // A random text that the change got in its transaction. If a catalog has another id at this
  // number, or none, then the revision is of another history: changes that were made once are
  // missing, because a backup was restored or a standby was promoted without them. Empty only in
  // Revision().
  std::string id;
  int64_t number = 0;

  friend bool operator==(const Revision& a, const Revision& b) = default;
};

// Target of an alias.
struct AliasTarget {
  std::string alias;
  int64_t version = 0;
};

// What one mapping's names mean: its versions, and the versions that its aliases point at.
struct MappingNames {
  std::string mapping;
  // Existing versions, ascending. Empty if every version or the whole mapping was deleted.
  std::vector<int64_t> versions = {};
  // Sorted by name.
  std::vector<AliasTarget> aliases = {};
  // Digests of `versions`, in their order.
  std::vector<std::string> digests = {};

  // Returns 0 if there is no version.
  int64_t newest_version() const { return versions.empty() ? 0 : versions.back(); }
};

// Maximum number of revisions that an answer about changes lists.
inline constexpr int64_t kListedRevisions = 1000;

// Changes of names since a revision.
struct NameChanges {
  // The revision after these changes.
  Revision revision;
  // If true, `mappings` lists all existing mappings, and those that are not listed do not exist.
  // This is so if the revision asked about is empty, of another history, or too old to tell.
  bool whole = false;
  // The newest revisions up to `revision`, ascending: those after the revision asked about, or if
  // `whole`, all; at most kListedRevisions.
  std::vector<Revision> passed = {};
  // The present state of each changed mapping, sorted by name. A mapping that changed several times
  // is listed once.
  std::vector<MappingNames> mappings = {};
};

// Records as texts, to keep them outside the tables that they came from: one line with every field
// that is stored, separated by tabs. AliasFrom and VersionFrom return DATA_LOSS (DATABASE_DAMAGED)
// for a text that TextOf did not write.
std::string TextOf(const AliasRecord& alias);
std::string TextOf(const VersionRecord& version);
absl::StatusOr<AliasRecord> AliasFrom(absl::string_view text);
absl::StatusOr<VersionRecord> VersionFrom(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_RECORDS_H_
