// Immutable byte strings named by their SHA-256, in PostgreSQL, in chunks.
//
// Invariants:
//   1. A blob is read only when its row is marked `complete`, which is set only in a transaction
//      that found every chunk there. The chunks were committed earlier, each in its own
//      transaction: no transaction and no lock lasts as long as an upload.
//   2. When Write returns OK the blob survives a crash, and a failover if there is a synchronous
//      standby: chunks may reach the disk late, but not later than the commit that completes them.
//   3. The content of a chunk follows from the blob, the size of its chunks (in its row, as
//      the first writer set it) and the chunk's number. So any number of writers of one digest
//      write the same, and a reader finds either the right chunk or none.
//
// An interrupted upload leaves an incomplete row with chunks; a later Write of the same bytes
// continues there. The caller knows which blobs are referenced.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_BLOBS_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/postgres/postgres_database.h"
#include "server/store/blobs.h"

namespace phimap {

// Thread-safe. Errors are those of SqlDatabase; a blob that is missing or damaged is DATA_LOSS.
class PostgresBlobs final : public Blobs {
 public:
  static constexpr int64_t kChunkBytes = int64_t{4} << 20;

  explicit PostgresBlobs(std::shared_ptr<PostgresDatabase> database)
      : database_(std::move(database)) {}

  // Writes `content` durably under `digest`. A blob that is there already is compared by its
  // SHA-256 on the server, chunk by chunk, and only sent again if it is damaged; its time of
  // writing becomes now. After an error a part may be stored, which no reader sees. REQUIRES:
  // digest == Sha256Hex(content).
  absl::Status Write(absl::string_view digest, absl::string_view content) override;
  // REQUIRES: the blob was written with `size_bytes` bytes. Missing, of another size or with other
  // content: DATA_LOSS.
  absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) override;
  // Returns `bytes` bytes from `offset` as stored: only a blob that is missing or shorter than
  // `size_bytes` is DATA_LOSS. REQUIRES: offset + bytes <= size_bytes.
  absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                        int64_t offset, int64_t bytes) override;
  // Reads in pieces, one chunk in memory at a time: damage shows before the last one. A blob that
  // is removed meanwhile ends in DATA_LOSS, because a snapshot that lasted as long as a slow reader
  // would keep the whole database from being cleaned up.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                             int64_t size_bytes) override;
  // OK if the blob does not exist.
  absl::Status Remove(absl::string_view digest) override;
  absl::StatusOr<std::vector<StoredBlob>> List() override;
  absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) override;
  // Removed in the caller's transaction: a failure changes nothing.
  absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                    absl::Time before) override;
  // The blob's chunks stay, as those of an interrupted upload do.
  absl::Status SetAside(absl::string_view digest) override;
  // Always 0: List includes uploads that were interrupted.
  absl::StatusOr<int64_t> RemoveRemains(absl::Time) override { return 0; }

 private:
  absl::StatusOr<int64_t> Begin(absl::string_view digest, int64_t size_bytes);
  absl::Status WriteChunk(absl::string_view digest, int64_t number, absl::string_view content);
  absl::Status Complete(absl::string_view digest, int64_t size_bytes, int64_t chunks);

  const std::shared_ptr<PostgresDatabase> database_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_BLOBS_H_
