// Immutable byte strings, each named by its SHA-256: the artifacts of a store.
//
// Invariants, which every implementation keeps at every instant, a crash included:
//   1. When Write returns OK the blob survives a crash.
//   2. A reader gets a whole blob or an error, never a part of one; nothing is changed in place.
//
// The caller knows which blobs are referenced. A writer of a blob that nothing names yet asks
// Contains in the transaction that names it: RemoveUnused is called within one as well, and
// transactions that write follow one another. Blocking: every call may wait for a disk or a
// network. Thread-safety: all methods may be called from any thread. Errors: DATA_LOSS (missing, or
// not the bytes of the digest), RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION (read-only, no
// permission), UNAVAILABLE.
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
#include "server/store/sql_database.h"

namespace phimap {

// A stored artifact, read from its start to its end in pieces. The blob stays readable when its
// version is deleted meanwhile. One thread at a time; must not outlive its store.
class ArtifactReader {
 public:
  virtual ~ArtifactReader() = default;
  virtual int64_t size_bytes() const = 0;
  // The next at most `limit_bytes`, 1 or more; empty at the end. If the bytes do not match the
  // digest, the last piece is DATA_LOSS instead: no reader gets the whole of a damaged artifact.
  virtual absl::StatusOr<std::string> Next(int64_t limit_bytes) = 0;
};

// Facts about a blob that are known without reading it.
struct StoredBlob {
  std::string digest;
  int64_t size_bytes = 0;
  // When it was last written, also if it was there already.
  absl::Time write_time;
};

class Blobs {
 public:
  virtual ~Blobs() = default;

  // Writes `content` durably. An existing blob is overwritten, which repairs a damaged one. After
  // an error the blob may or may not exist: the caller decides whether to Remove it. REQUIRES:
  // digest == Sha256Hex(content).
  virtual absl::Status Write(absl::string_view digest, absl::string_view content) = 0;
  // Writes the bytes of `content`, which is read from its start: DATA_LOSS if they do not match the
  // digest. Writers that can hold pieces of it only.
  virtual absl::Status WriteFrom(absl::string_view digest, ArtifactReader& content);
  // REQUIRES, here and below: the blob was written with `size_bytes` bytes. Missing, of another
  // size or with other content: DATA_LOSS.
  virtual absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) = 0;
  // `bytes` of it from `offset`, not compared with the digest: DATA_LOSS only if they are not
  // there. REQUIRES: offset + bytes <= size_bytes.
  virtual absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                                int64_t offset, int64_t bytes) = 0;
  // Reads in pieces: damage shows before the last one.
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                                     int64_t size_bytes) = 0;
  // OK if the blob does not exist.
  virtual absl::Status Remove(absl::string_view digest) = 0;

  // All that are there, parts of uploads that were cut among them.
  virtual absl::StatusOr<std::vector<StoredBlob>> List() = 0;
  // Whether the whole blob is there, asked in a transaction that writes.
  virtual absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) = 0;
  // Removes a blob unless it was written after `before`; returns whether it is gone. REQUIRES: a
  // transaction that writes, in which no version names it. If the transaction fails nevertheless,
  // the blob may be gone or not.
  virtual absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                            absl::Time before) = 0;
  // Moves a damaged blob aside, so that it is missing until it is written again, and readers learn
  // so at once. OK if the blob does not exist.
  virtual absl::Status SetAside(absl::string_view digest) = 0;
  // Unlinks files that RemoveUnused and interrupted writers left behind and that were not touched
  // since `before`; returns their number.
  virtual absl::StatusOr<int64_t> RemoveRemains(absl::Time before) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BLOBS_H_
