// The artifacts of a store, kept as blobs: immutable byte strings. The name of a blob is its
// SHA-256.
//
// Invariants of every implementation, at every instant, even across a crash:
//   1. After Write has returned OK, the blob survives a crash.
//   2. A reader gets a whole blob or an error, never a part of a blob. Nothing is changed in place.
//
// This interface does not know which blobs are still needed; its caller does. A transaction that
// stores the first reference to a blob must call Contains. RemoveUnused is also called within a
// transaction. Transactions that write run one after another, so the blob cannot be removed between
// Contains and the commit.
//
// Blocking: every call may wait for a disk or a network. Thread-safety: all methods may be called
// from any thread. Errors: DATA_LOSS (the blob is missing or does not match its digest),
// RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION (read-only, no permission), UNAVAILABLE.
#ifndef PHIMAP_SERVER_STORE_BLOBS_H_
#define PHIMAP_SERVER_STORE_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/status/status_macros.h"
#include "server/store/sql_database.h"

namespace phimap {

// A stored artifact that is read from its start to its end in pieces. The blob stays readable if
// its version is deleted meanwhile. Used by one thread at a time; must not outlive its store.
class ArtifactReader {
 public:
  virtual ~ArtifactReader() = default;
  virtual int64_t size_bytes() const = 0;
  // Returns the next bytes, at most `limit_bytes` (which is 1 or more), or an empty string at the
  // end. If the bytes do not match the digest, returns DATA_LOSS instead of the last piece, so that
  // no reader gets the whole of a damaged artifact.
  virtual absl::StatusOr<std::string> Next(int64_t limit_bytes) = 0;
};

// Facts about a blob that are known without reading it.
struct StoredBlob {
  std::string digest;
  int64_t size_bytes = 0;
  // Time at which the blob was last written, even if it already existed then.
  absl::Time write_time;
};

class Blobs {
 public:
  virtual ~Blobs() = default;

  // Writes `content` durably. An existing blob is overwritten, which repairs a damaged one. After
  // an error the blob may or may not exist; the caller decides whether to call Remove. REQUIRES:
  // digest == Sha256Hex(content).
  virtual absl::Status Write(absl::string_view digest, absl::string_view content) = 0;
  // Writes the bytes of `content`, which is read from its start. DATA_LOSS if they do not match the
  // digest. Implementations that can write in pieces override this; the default reads all of
  // `content` into memory.
  virtual absl::Status WriteFrom(absl::string_view digest, ArtifactReader& content) {
    std::string whole;
    whole.reserve(static_cast<size_t>(content.size_bytes()));
    for (;;) {
      PHIMAP_ASSIGN_OR_RETURN(const std::string piece, content.Next(content.size_bytes()));
      if (piece.empty()) return Write(digest, whole);
      whole += piece;
    }
  }
  // Returns the whole blob. DATA_LOSS if it is missing, has another size or has other content.
  // REQUIRES, for this function and those below: the blob was written with `size_bytes` bytes.
  virtual absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) = 0;
  // Returns `bytes` bytes of the blob from `offset`, without checking the digest. DATA_LOSS only if
  // these bytes do not exist. REQUIRES: offset + bytes <= size_bytes.
  virtual absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                                int64_t offset, int64_t bytes) = 0;
  // Opens a blob to be read in pieces. Damage is reported in place of the last piece.
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                                     int64_t size_bytes) = 0;
  // Removes a blob. OK if the blob does not exist.
  virtual absl::Status Remove(absl::string_view digest) = 0;

  // Lists all blobs, including parts of interrupted uploads.
  virtual absl::StatusOr<std::vector<StoredBlob>> List() = 0;
  // Returns whether the whole blob exists. Called in a transaction that writes.
  virtual absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) = 0;
  // Removes a blob unless it was written after `before`. Returns whether the blob is gone.
  // REQUIRES: `session` is in a transaction that writes, and no version refers to the blob. If the
  // transaction fails afterwards, the blob may or may not be gone.
  virtual absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                            absl::Time before) = 0;
  // Moves a damaged blob aside. It is then missing until it is written again, so readers learn of
  // the damage at once. OK if the blob does not exist.
  virtual absl::Status SetAside(absl::string_view digest) = 0;
  // Unlinks files that RemoveUnused and interrupted writers left behind, unless they were touched
  // since `before`. Returns the number of these files.
  virtual absl::StatusOr<int64_t> RemoveRemains(absl::Time before) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BLOBS_H_
