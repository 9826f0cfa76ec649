// Immutable byte strings, each named by its SHA-256: the artifacts of a store.
//
// Invariants, which every implementation keeps at every instant, a crash included:
//   1. When Write returns OK the blob survives a crash.
//   2. A reader gets a whole blob or an error, never a part of one; nothing is changed in place.
//
// Which blobs are referenced is the caller's knowledge. Who writes one that nothing names yet asks
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

// A stored artifact, read from its start to its end in pieces. It stays readable when its version
// is deleted meanwhile. One thread at a time; must not outlive its store.
class ArtifactReader {
 public:
  virtual ~ArtifactReader() = default;
  virtual int64_t size_bytes() const = 0;
  // The next at most `limit_bytes`, 1 or more; empty at the end. Of bytes that are not those of the
  // digest the last piece is DATA_LOSS instead: nobody gets the whole of a damaged artifact.
  virtual absl::StatusOr<std::string> Next(int64_t limit_bytes) = 0;
};

// What is known of a blob without reading it.
struct StoredBlob {
  std::string digest;
  int64_t size_bytes = 0;
  // When it was last written, also if it was there already.
  absl::Time write_time;
};

class Blobs {
 public:
  virtual ~Blobs() = default;

  // Writes `content` durably. One that is there is written again, which heals a damaged one. On
  // error the blob may be there or not: the caller decides whether to Remove it.
  // REQUIRES: digest == Sha256Hex(content).
  virtual absl::Status Write(absl::string_view digest, absl::string_view content) = 0;
  // Writes what `content` yields, which is read from its start: DATA_LOSS if that is not what
  // it should be. Writers that can hold pieces of it only.
  virtual absl::Status WriteFrom(absl::string_view digest, ArtifactReader& content);
  // REQUIRES, here and below: the blob was written with `size_bytes` bytes. Missing, of another
  // size or with other content: DATA_LOSS.
  virtual absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) = 0;
  // `bytes` of it from `offset`, not compared with the digest: DATA_LOSS only if they are not
  // there. REQUIRES: offset + bytes <= size_bytes.
  virtual absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                                int64_t offset, int64_t bytes) = 0;
  // Reads in pieces: what is damaged shows before the last one.
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                                     int64_t size_bytes) = 0;
  // OK when there is no such blob.
  virtual absl::Status Remove(absl::string_view digest) = 0;

  // All that are there, parts of uploads that were cut among them.
  virtual absl::StatusOr<std::vector<StoredBlob>> List() = 0;
  // Whether the whole blob is there, asked in a transaction that writes.
  virtual absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) = 0;
  // Takes a blob away unless it was written after `before`; whether it is gone now. REQUIRES: a
  // transaction that writes, in which no version names it. Should the transaction fail all the
  // same, the blob may be gone or not.
  virtual absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                            absl::Time before) = 0;
  // Sets a damaged blob aside, so that it is missing until somebody writes it again: whoever
  // looks for it is told so at once. OK when there is no such blob.
  virtual absl::Status SetAside(absl::string_view digest) = 0;
  // Unlinks what RemoveUnused and interrupted writers left behind and nobody touched since
  // `before`; returns how many.
  virtual absl::StatusOr<int64_t> RemoveRemains(absl::Time before) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BLOBS_H_
