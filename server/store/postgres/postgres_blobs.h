// Blobs in PostgreSQL: immutable byte strings named by their SHA-256, stored in chunks.
//
// Invariants:
//   1. A blob is read only if its row is marked `complete`. The mark is set only in a transaction
//      that has found every chunk. The chunks were committed earlier, each in its own transaction,
//      so no transaction and no lock lasts as long as an upload.
//   2. After Write has returned OK, the blob survives a crash, and a failover if there is a
//      synchronous standby. Chunks may reach the disk late, but not later than the commit that
//      marks the blob as complete.
//   3. The content of a chunk is determined by the blob, the size of its chunks (stored in its row
//      by the first writer) and the chunk's number. So all writers of one digest write the same
//      chunks, and a reader finds either the right chunk or none.
//
// An interrupted upload leaves an incomplete row with chunks; a later Write of the same bytes
// continues there. The caller must know which blobs are still referenced.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_BLOBS_H_
#define PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/blobs.h"
#include "server/store/postgres/postgres_database.h"

namespace phimap {

// Thread-safe. Errors: those of SqlDatabase, and DATA_LOSS for a blob that is missing or damaged.
class PostgresBlobs final : public Blobs {
 public:
  static constexpr int64_t kChunkBytes = int64_t{4} << 20;

  explicit PostgresBlobs(std::shared_ptr<PostgresDatabase> database)
      : database_(std::move(database)) {}

  // Writes `content` durably under `digest`. If the blob already exists, the database server
  // compares the SHA-256 of each chunk, and only damaged or missing chunks are sent again; the
  // blob's time of writing becomes now. After an error a part may be stored, which no reader sees.
  // REQUIRES: digest == Sha256Hex(content).
  absl::Status Write(absl::string_view digest, absl::string_view content) override;
  // Returns the whole blob. DATA_LOSS if it is missing, has another size or has other content.
  // REQUIRES: the blob was written with `size_bytes` bytes.
  absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) override;
  // Returns `bytes` bytes from `offset` without checking the digest. DATA_LOSS only if the blob is
  // missing or shorter than `size_bytes`. REQUIRES: offset + bytes <= size_bytes.
  absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                        int64_t offset, int64_t bytes) override;
  // Reads in pieces, with one chunk in memory at a time. Damage is reported in place of the last
  // piece. If the blob is removed meanwhile, reading ends with DATA_LOSS: there is no snapshot,
  // because a snapshot that lasted as long as a slow reader would prevent cleanup (VACUUM) of the
  // whole database.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                             int64_t size_bytes) override;
  // Removes the blob. OK if the blob does not exist.
  absl::Status Remove(absl::string_view digest) override;
  absl::StatusOr<std::vector<StoredBlob>> List() override;
  absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) override;
  // Removes the blob in the caller's transaction, so a failure changes nothing.
  absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                    absl::Time before) override;
  // Marks the blob as incomplete but keeps its chunks, as after an interrupted upload.
  absl::Status SetAside(absl::string_view digest) override;
  // Always returns 0, because List includes interrupted uploads.
  absl::StatusOr<int64_t> RemoveRemains(absl::Time) override { return 0; }

 private:
  absl::StatusOr<int64_t> Begin(absl::string_view digest, int64_t size_bytes);
  absl::Status WriteChunk(absl::string_view digest, int64_t number, absl::string_view content);
  absl::Status Complete(absl::string_view digest, int64_t size_bytes, int64_t chunks);

  const std::shared_ptr<PostgresDatabase> database_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_BLOBS_H_
