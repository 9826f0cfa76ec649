#include "server/store/postgres/postgres_blobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/digest/sha256.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/catalog_errors.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

using Durability = PostgresDatabase::Durability;

absl::Status Damaged(absl::string_view digest, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactDamaged, "",
                   absl::StrCat("artifact ", digest, " ", what,
                                " in the database; restore it from a backup, or build the mapping "
                                "again"),
                   {{"digest", std::string(digest)}});
}

absl::Status WrongSize(absl::string_view digest, int64_t actual, int64_t expected) {
  return Damaged(digest, absl::StrCat("has ", actual, " of its ", expected, " bytes"));
}

// Returns the chunk size of a complete blob.
absl::StatusOr<int64_t> FindChunkBytes(PostgresDatabase* database, absl::string_view digest,
                                       int64_t size_bytes) {
  int64_t chunk_bytes = 0;
  // This comes first, and is over soon if the database hangs. The chunks may take longer.
  PHIMAP_RETURN_IF_ERROR(database->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows row,
        session.Run("SELECT chunk_bytes, size_bytes FROM blobs WHERE digest = $1 AND complete = 1",
                    {digest}));
    if (row.empty()) return Damaged(digest, "is missing");
    if (row.Int(0, 1) != size_bytes) return WrongSize(digest, row.Int(0, 1), size_bytes);
    chunk_bytes = row.Int(0, 0);
    return absl::OkStatus();
  }));
  return chunk_bytes;
}

// Reads at most `bytes` bytes of chunk `number` from `offset`.
absl::StatusOr<std::string> ReadChunk(PostgresDatabase* database, absl::string_view digest,
                                      int64_t number, int64_t offset, int64_t bytes) {
  std::string content;
  PHIMAP_RETURN_IF_ERROR(database->ReadBytes([&](PostgresSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows row,
        session.RunBinary("SELECT substring(content FROM $3::int FOR $4::int) FROM blob_chunks "
                          "WHERE digest = $1 AND number = $2",
                          {digest, number, offset + 1, bytes}));
    if (row.empty()) return Damaged(digest, absl::StrCat("lacks chunk ", number));
    content = row.Text(0, 0);
    return absl::OkStatus();
  }));
  return content;
}

class ChunkReader : public ArtifactReader {
 public:
  ChunkReader(PostgresDatabase* database, absl::string_view digest, int64_t size_bytes,
              int64_t chunk_bytes)
      : database_(database), digest_(digest), size_bytes_(size_bytes), chunk_bytes_(chunk_bytes) {}

  int64_t size_bytes() const override { return size_bytes_; }

  absl::StatusOr<std::string> Next(int64_t limit_bytes) override {
    if (read_bytes_ == size_bytes_) return std::string();
    if (chunk_offset_ == static_cast<int64_t>(chunk_.size())) PHIMAP_RETURN_IF_ERROR(LoadChunk());
    std::string piece = chunk_.substr(static_cast<size_t>(chunk_offset_),
                                      static_cast<size_t>(std::max<int64_t>(0, limit_bytes)));
    chunk_offset_ += static_cast<int64_t>(piece.size());
    read_bytes_ += static_cast<int64_t>(piece.size());
    hash_.Update(piece);
    if (read_bytes_ == size_bytes_) {
      if (const std::string actual = hash_.Hex(); actual != digest_) {
        return Damaged(digest_, absl::StrCat("has SHA-256 ", actual));
      }
    }
    return piece;
  }

 private:
  absl::Status LoadChunk() {
    chunk_.clear();
    chunk_.shrink_to_fit();
    const int64_t expected = std::min(chunk_bytes_, size_bytes_ - read_bytes_);
    // Asks for one byte more than expected, to detect a chunk that is too long.
    PHIMAP_ASSIGN_OR_RETURN(
        chunk_, ReadChunk(database_, digest_, read_bytes_ / chunk_bytes_, 0, expected + 1));
    chunk_offset_ = 0;
    const auto actual = static_cast<int64_t>(chunk_.size());
    return actual == expected ? absl::OkStatus()
                              : WrongSize(digest_, read_bytes_ + actual, size_bytes_);
  }

  PostgresDatabase* const database_;
  const std::string digest_;
  const int64_t size_bytes_;
  const int64_t chunk_bytes_;
  std::string chunk_;
  int64_t chunk_offset_ = 0;
  int64_t read_bytes_ = 0;
  Sha256 hash_;
};

}  // namespace

absl::Status PostgresBlobs::Write(absl::string_view digest, absl::string_view content) {
  const auto size_bytes = static_cast<int64_t>(content.size());
  PHIMAP_ASSIGN_OR_RETURN(const int64_t chunk_bytes, Begin(digest, size_bytes));
  const int64_t chunks = (size_bytes + chunk_bytes - 1) / chunk_bytes;
  for (int64_t number = 0; number < chunks; ++number) {
    PHIMAP_RETURN_IF_ERROR(WriteChunk(digest, number,
                                      content.substr(static_cast<size_t>(number * chunk_bytes),
                                                     static_cast<size_t>(chunk_bytes))));
  }
  return Complete(digest, size_bytes, chunks);
}

absl::StatusOr<int64_t> PostgresBlobs::Begin(absl::string_view digest, int64_t size_bytes) {
  PHIMAP_CHECK(IsSha256Hex(digest));
  int64_t chunk_bytes = 0;
  PHIMAP_RETURN_IF_ERROR(
      database_->WriteTwice(Durability::kWithNext, [&](PostgresSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows row,
            session.Run("INSERT INTO blobs (digest, size_bytes, chunk_bytes, complete, "
                        "write_time_us) SELECT $1::text, $2::bigint, $3::bigint, 0, now_us "
                        "FROM clock ON CONFLICT (digest) DO UPDATE "
                        "SET write_time_us = excluded.write_time_us RETURNING chunk_bytes",
                        {digest, size_bytes, kChunkBytes}));
        chunk_bytes = row.Int(0, 0);
        return absl::OkStatus();
      }));
  return chunk_bytes;
}

absl::Status PostgresBlobs::WriteChunk(absl::string_view digest, int64_t number,
                                       absl::string_view content) {
  const std::string expected = Sha256Hex(content);
  return database_->WriteTwice(
      Durability::kWithNext, [&](PostgresSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows there,
            session.Run("SELECT encode(sha256(content), 'hex') FROM blob_chunks "
                        "WHERE digest = $1 AND number = $2",
                        {digest, number}));
        if (!there.empty() && there.Text(0, 0) == expected) return absl::OkStatus();
        return session
            .RunBinary(
                "INSERT INTO blob_chunks (digest, number, content) VALUES ($1, $2, $3) "
                "ON CONFLICT (digest, number) DO UPDATE SET content = excluded.content",
                {digest, number, PostgresBytes{content}})
            .status();
      });
}

absl::Status PostgresBlobs::Complete(absl::string_view digest, int64_t size_bytes, int64_t chunks) {
  return database_->WriteTwice(Durability::kNow, [&](PostgresSession& session) -> absl::Status {
    // Locks the row, so that no chunks are removed between the count and the commit.
    PHIMAP_RETURN_IF_ERROR(session
                               .Run("UPDATE blobs SET complete = 1, size_bytes = $1, "
                                    "write_time_us = (SELECT now_us FROM clock) WHERE digest = $2",
                                    {size_bytes, digest})
                               .status());
    PHIMAP_RETURN_IF_ERROR(
        session.Run("DELETE FROM blob_chunks WHERE digest = $1 AND number >= $2", {digest, chunks})
            .status());
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows there,
                            session.Run("SELECT (SELECT count(*) FROM blobs WHERE digest = $1), "
                                        "(SELECT count(*) FROM blob_chunks WHERE digest = $1)",
                                        {digest}));
    if (there.Int(0, 0) == 1 && there.Int(0, 1) == chunks) return absl::OkStatus();
    return ArtifactRemoved(digest);
  });
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> PostgresBlobs::OpenReader(absl::string_view digest,
                                                                          int64_t size_bytes) {
  PHIMAP_CHECK(IsSha256Hex(digest));
  PHIMAP_ASSIGN_OR_RETURN(const int64_t chunk_bytes,
                          FindChunkBytes(database_.get(), digest, size_bytes));
  return std::make_unique<ChunkReader>(database_.get(), digest, size_bytes, chunk_bytes);
}

absl::StatusOr<std::string> PostgresBlobs::Read(absl::string_view digest, int64_t size_bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                          OpenReader(digest, size_bytes));
  std::string content;
  content.reserve(static_cast<size_t>(size_bytes));
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string piece, reader->Next(kChunkBytes));
    if (piece.empty()) break;
    content += piece;
  }
  // The reader checks the digest with the last piece, and an empty blob has no pieces.
  if (content.empty() && Sha256Hex(content) != digest) return WrongSize(digest, 0, size_bytes);
  return content;
}

absl::StatusOr<std::string> PostgresBlobs::ReadRange(absl::string_view digest, int64_t size_bytes,
                                                     int64_t offset, int64_t bytes) {
  PHIMAP_CHECK(IsSha256Hex(digest) && offset >= 0 && bytes >= 0 && offset + bytes <= size_bytes);
  PHIMAP_ASSIGN_OR_RETURN(const int64_t chunk_bytes,
                          FindChunkBytes(database_.get(), digest, size_bytes));
  std::string range;
  for (int64_t at = offset; at < offset + bytes;) {
    const int64_t wanted = std::min(chunk_bytes - at % chunk_bytes, offset + bytes - at);
    PHIMAP_ASSIGN_OR_RETURN(
        const std::string part,
        ReadChunk(database_.get(), digest, at / chunk_bytes, at % chunk_bytes, wanted));
    if (const auto actual = static_cast<int64_t>(part.size()); actual != wanted) {
      return WrongSize(digest, at + actual, size_bytes);
    }
    range += part;
    at += wanted;
  }
  return range;
}

absl::Status PostgresBlobs::Remove(absl::string_view digest) {
  PHIMAP_CHECK(IsSha256Hex(digest));
  return database_->WriteTwice(Durability::kNow, [&](PostgresSession& session) -> absl::Status {
    PHIMAP_RETURN_IF_ERROR(session.Run("DELETE FROM blobs WHERE digest = $1", {digest}).status());
    return session.Run("DELETE FROM blob_chunks WHERE digest = $1", {digest}).status();
  });
}

absl::StatusOr<std::vector<StoredBlob>> PostgresBlobs::List() {
  std::vector<StoredBlob> blobs;
  PHIMAP_RETURN_IF_ERROR(database_->ReadBytes([&](PostgresSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                            session.Run("SELECT digest, size_bytes, write_time_us FROM blobs"));
    blobs.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      blobs.push_back({rows.Text(i, 0), rows.Int(i, 1), absl::FromUnixMicros(rows.Int(i, 2))});
    }
    return absl::OkStatus();
  }));
  return blobs;
}

absl::StatusOr<bool> PostgresBlobs::Contains(SqlSession& session, absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run("SELECT 1 FROM blobs WHERE digest = $1 AND complete = 1", {digest}));
  return !rows.empty();
}

absl::StatusOr<bool> PostgresBlobs::RemoveUnused(SqlSession& session, absl::string_view digest,
                                                 absl::Time before) {
  // If a writer has locked the row, this statement waits for it, and then compares with the time
  // that the writer set.
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows fresh,
      session.Run("SELECT 1 FROM blobs WHERE digest = $1 AND write_time_us > $2 FOR UPDATE",
                  {digest, absl::ToUnixMicros(before)}));
  if (!fresh.empty()) return false;
  PHIMAP_RETURN_IF_ERROR(session
                             .Run("DELETE FROM blobs WHERE digest = $1 AND write_time_us <= $2",
                                  {digest, absl::ToUnixMicros(before)})
                             .status());
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows left,
                          session.Run("SELECT 1 FROM blobs WHERE digest = $1", {digest}));
  if (!left.empty()) return false;
  PHIMAP_RETURN_IF_ERROR(
      session.Run("DELETE FROM blob_chunks WHERE digest = $1", {digest}).status());
  return true;
}

absl::Status PostgresBlobs::SetAside(absl::string_view digest) {
  return database_->WriteAside([digest](SqlSession& session) {
    return session.Run("UPDATE blobs SET complete = 0 WHERE digest = $1", {digest}).status();
  });
}

}  // namespace phimap
