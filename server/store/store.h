// The store: names, versions, aliases and finished builds, and the artifacts that versions point
// to.
//
// Invariants, which every implementation keeps at every instant, a crash included:
//   1. A version that is visible has its whole artifact on durable storage. (The artifact is
//   durable before the
//      transaction that names it commits.)
//   2. Version numbers of a name are 1, 2, 3 …; a number is never used twice.
//   3. The version and the row of the build that made it appear in one transaction.
//   4. Nothing that a failed or interrupted call wrote is ever visible; start-up removes it.
//
// Blocking: every call may wait for a disk. None is made on an RPC thread.
// Thread-safety: all methods may be called from any thread.
// Errors: NOT_FOUND (unknown name, version or build), ALREADY_EXISTS, ABORTED (fencing lost),
// RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION (read-only or locked directory), DATA_LOSS
// (stored bytes are damaged), UNAVAILABLE.
#ifndef PHIMAP_SERVER_STORE_STORE_H_
#define PHIMAP_SERVER_STORE_STORE_H_

#include <cstdint>
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
};

// One name's row.
struct MappingRecord {
  std::string name;
  int64_t newest_version = 0;  // 0 when every version was deleted
  int64_t version_count = 0;
  absl::Time create_time;
};

// How a build ended. Kept for kBuildRetention after `end_time`.
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

class Store {
 public:
  virtual ~Store() = default;

  // Writes the artifact durably, then the version and its build row in one transaction. When it
  // returns OK the version survives any crash. When it returns an error nothing is visible; an
  // ambiguous failure of the commit itself is resolved by reading back before it returns. A
  // (mapping, build_id) that is recorded already: ALREADY_EXISTS.
  virtual absl::StatusOr<VersionRecord> Publish(const PublishRequest& request,
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
  // The artifact with this digest; its SHA-256 is checked against it (DATA_LOSS).
  virtual absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_H_
