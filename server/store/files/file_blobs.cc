#include "server/store/files/file_blobs.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/digest/sha256.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

uint8_t ShardIndex(absl::string_view digest) {
  return static_cast<uint8_t>(absl::HexStringToBytes(digest.substr(0, 2))[0]);
}

absl::Status Damaged(absl::string_view digest, const std::string& path, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactDamaged, "",
                   absl::StrCat("artifact ", digest, ": ", path, " ", what,
                                "; restore the file from a backup, or build the mapping again"),
                   {{"digest", std::string(digest)}, {"path", path}});
}

absl::Status WrongSize(absl::string_view digest, const std::string& path, int64_t actual,
                       int64_t expected) {
  return Damaged(digest, path, absl::StrCat("has ", actual, " of its ", expected, " bytes"));
}

absl::Status WrongDigest(absl::string_view digest, const std::string& path,
                         absl::string_view actual) {
  return Damaged(digest, path, absl::StrCat("has SHA-256 ", actual));
}

constexpr int64_t kPieceBytes = int64_t{1} << 20;

absl::Status Fill(WritableFile& file, absl::FunctionRef<absl::Status(WritableFile&)> fill) {
  PHIMAP_RETURN_IF_ERROR(fill(file));
  PHIMAP_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

class BlobReader : public ArtifactReader {
 public:
  BlobReader(std::string digest, std::string path, int64_t size_bytes,
             std::unique_ptr<ReadableFile> file)
      : digest_(std::move(digest)),
        path_(std::move(path)),
        size_bytes_(size_bytes),
        file_(std::move(file)) {}

  int64_t size_bytes() const override { return size_bytes_; }

  absl::StatusOr<std::string> Next(int64_t limit_bytes) override {
    const int64_t wanted = std::min(limit_bytes, size_bytes_ - read_bytes_);
    if (wanted == 0) return std::string();
    PHIMAP_ASSIGN_OR_RETURN(std::string piece, file_->Read(wanted));
    read_bytes_ += static_cast<int64_t>(piece.size());
    if (static_cast<int64_t>(piece.size()) != wanted) {
      return WrongSize(digest_, path_, read_bytes_, size_bytes_);
    }
    hash_.Update(piece);
    if (read_bytes_ == size_bytes_) {
      if (const std::string actual = hash_.Hex(); actual != digest_) {
        return WrongDigest(digest_, path_, actual);
      }
    }
    return piece;
  }

 private:
  const std::string digest_;
  const std::string path_;
  const int64_t size_bytes_;
  const std::unique_ptr<ReadableFile> file_;
  int64_t read_bytes_ = 0;
  Sha256 hash_;
};

}  // namespace

FileBlobs::FileBlobs(std::string root, FileSystem* file_system)
    : root_(std::move(root)),
      blobs_path_(absl::StrCat(root_, "/blobs")),
      temporary_path_(absl::StrCat(root_, "/tmp")),
      quarantine_path_(absl::StrCat(root_, "/quarantine")),
      file_system_(file_system) {}

std::string FileBlobs::BlobPath(absl::string_view digest) const {
  PHIMAP_CHECK(IsSha256Hex(digest));
  return absl::StrCat(blobs_path_, "/", digest.substr(0, 2), "/", digest);
}

std::string FileBlobs::ShardPath(absl::string_view digest) const {
  return absl::StrCat(blobs_path_, "/", digest.substr(0, 2));
}

absl::Status FileBlobs::CreateDirectories() {
  PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(blobs_path_));
  PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(temporary_path_));
  PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(quarantine_path_));
  return file_system_->SyncDir(root_);
}

absl::Status FileBlobs::MakeShardDurable(absl::string_view digest) {
  const uint8_t shard = ShardIndex(digest);
  {
    MutexLock lock(&mutex_);
    if (durable_shards_[shard]) return absl::OkStatus();
  }
  PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(ShardPath(digest)));
  PHIMAP_RETURN_IF_ERROR(file_system_->SyncDir(blobs_path_));
  MutexLock lock(&mutex_);
  durable_shards_[shard] = true;
  return absl::OkStatus();
}

absl::Status FileBlobs::WriteFile(const std::string& path, const std::string& directory,
                                  absl::FunctionRef<absl::Status(WritableFile&)> fill) {
  std::string temporary;
  absl::StatusOr<std::unique_ptr<WritableFile>> file;
  do {  // Another writer may have used this number.
    temporary = absl::StrCat(temporary_path_, "/", next_temporary_.fetch_add(1), ".part");
    file = file_system_->NewWritableFile(temporary);
  } while (absl::IsAlreadyExists(file.status()));
  absl::Status status = file.ok() ? Fill(**file, fill) : file.status();
  if (status.ok()) status = file_system_->Rename(temporary, path);
  if (!status.ok()) {
    // The file may exist after any failure. The first error is the one to report.
    file_system_->Remove(temporary).IgnoreError();
    return status;
  }
  return file_system_->SyncDir(directory);
}

absl::Status FileBlobs::Write(absl::string_view digest, absl::string_view content) {
  PHIMAP_RETURN_IF_ERROR(MakeShardDurable(digest));
  return WriteFile(BlobPath(digest), ShardPath(digest),
                   [&](WritableFile& file) { return file.Append(content); });
}

absl::Status FileBlobs::WriteFrom(absl::string_view digest, ArtifactReader& content) {
  PHIMAP_RETURN_IF_ERROR(MakeShardDurable(digest));
  return WriteFile(BlobPath(digest), ShardPath(digest), [&](WritableFile& file) -> absl::Status {
    for (;;) {
      PHIMAP_ASSIGN_OR_RETURN(const std::string piece, content.Next(kPieceBytes));
      if (piece.empty()) return absl::OkStatus();
      PHIMAP_RETURN_IF_ERROR(file.Append(piece));
    }
  });
}

absl::Status FileBlobs::WriteNamed(absl::string_view name, absl::string_view content) {
  return WriteFile(absl::StrCat(blobs_path_, "/", name), blobs_path_,
                   [&](WritableFile& file) { return file.Append(content); });
}

absl::StatusOr<std::string> FileBlobs::Read(absl::string_view digest, int64_t size_bytes) {
  const std::string path = BlobPath(digest);
  absl::StatusOr<std::string> content = file_system_->ReadFile(path, size_bytes);
  if (absl::IsNotFound(content.status())) return Damaged(digest, path, "is missing");
  if (absl::IsOutOfRange(content.status())) {
    return Damaged(digest, path, absl::StrCat("has more than its ", size_bytes, " bytes"));
  }
  if (!content.ok()) return content;
  if (static_cast<int64_t>(content->size()) != size_bytes) {
    return WrongSize(digest, path, static_cast<int64_t>(content->size()), size_bytes);
  }
  if (const std::string actual = Sha256Hex(*content); actual != digest) {
    return WrongDigest(digest, path, actual);
  }
  return content;
}

absl::StatusOr<std::string> FileBlobs::ReadRange(absl::string_view digest, int64_t size_bytes,
                                                 int64_t offset, int64_t bytes) {
  const std::string path = BlobPath(digest);
  absl::StatusOr<std::string> part = file_system_->ReadRange(path, offset, bytes);
  if (absl::IsNotFound(part.status())) return Damaged(digest, path, "is missing");
  if (!part.ok()) return part;
  if (const auto read = static_cast<int64_t>(part->size()); read != bytes) {
    return WrongSize(digest, path, offset + read, size_bytes);
  }
  return part;
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> FileBlobs::OpenReader(absl::string_view digest,
                                                                      int64_t size_bytes) {
  const std::string path = BlobPath(digest);
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = file_system_->NewReadableFile(path);
  if (absl::IsNotFound(file.status())) return Damaged(digest, path, "is missing");
  if (!file.ok()) return file.status();
  return std::make_unique<BlobReader>(std::string(digest), path, size_bytes, *std::move(file));
}

absl::Status FileBlobs::Remove(absl::string_view digest) {
  const absl::Status status = file_system_->Remove(BlobPath(digest));
  // The removal is not synced: if the blob reappears after a power failure, it is unreferenced, and
  // the garbage collector will find it again.
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<std::string>> FileBlobs::ListDigests() {
  PHIMAP_ASSIGN_OR_RETURN(std::vector<std::string> shards, file_system_->List(blobs_path_));
  std::vector<std::string> digests;
  for (const std::string& shard : shards) {
    if (shard.size() != 2) continue;
    PHIMAP_ASSIGN_OR_RETURN(std::vector<std::string> names,
                            file_system_->List(absl::StrCat(blobs_path_, "/", shard)));
    for (std::string& name : names) {
      if (IsSha256Hex(name) && name.substr(0, 2) == shard) digests.push_back(std::move(name));
    }
  }
  return digests;
}

absl::StatusOr<bool> FileBlobs::HasBlobs() {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<std::string> digests, ListDigests());
  return !digests.empty();
}

absl::StatusOr<std::vector<StoredBlob>> FileBlobs::List() {
  PHIMAP_ASSIGN_OR_RETURN(std::vector<std::string> digests, ListDigests());
  std::vector<StoredBlob> blobs;
  blobs.reserve(digests.size());
  for (std::string& digest : digests) {
    const absl::StatusOr<FileFacts> facts = file_system_->Facts(BlobPath(digest));
    if (absl::IsNotFound(facts.status())) continue;  // Removed meanwhile.
    PHIMAP_RETURN_IF_ERROR(facts.status());
    blobs.push_back({std::move(digest), facts->size_bytes, facts->write_time});
  }
  return blobs;
}

absl::StatusOr<bool> FileBlobs::Contains(SqlSession&, absl::string_view digest) {
  const absl::Status found = file_system_->SizeBytes(BlobPath(digest)).status();
  if (absl::IsNotFound(found)) return false;
  PHIMAP_RETURN_IF_ERROR(found);
  return true;
}

absl::StatusOr<bool> FileBlobs::RemoveUnused(SqlSession&, absl::string_view digest,
                                             absl::Time before) {
  const std::string path = BlobPath(digest);
  const absl::StatusOr<FileFacts> facts = file_system_->Facts(path);
  if (absl::IsNotFound(facts.status())) return true;
  PHIMAP_RETURN_IF_ERROR(facts.status());
  if (facts->write_time > before) return false;
  // The move is not synced: if the blob reappears after a power failure, it is unreferenced, and
  // the garbage collector will find it again. A blob that was written after its time was checked is
  // moved as well; its publisher notices that when it calls Contains.
  PHIMAP_RETURN_IF_ERROR(file_system_->Rename(path, absl::StrCat(quarantine_path_, "/", digest)));
  return true;
}

absl::Status FileBlobs::SetAside(absl::string_view digest) {
  const absl::Status moved = file_system_->Rename(
      BlobPath(digest), absl::StrCat(quarantine_path_, "/", digest, ".damaged"));
  if (absl::IsNotFound(moved)) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(moved);
  return file_system_->SyncDir(ShardPath(digest));
}

absl::StatusOr<bool> FileBlobs::RemoveOld(const std::string& path, absl::Time before) {
  const absl::StatusOr<FileFacts> facts = file_system_->Facts(path);
  if (absl::IsNotFound(facts.status())) return false;  // Renamed, or removed by somebody else.
  PHIMAP_RETURN_IF_ERROR(facts.status());
  if (facts->change_time > before) return false;
  const absl::Status removed = file_system_->Remove(path);
  if (absl::IsNotFound(removed)) return false;
  PHIMAP_RETURN_IF_ERROR(removed);
  return true;
}

absl::StatusOr<int64_t> FileBlobs::RemoveRemains(absl::Time before) {
  int64_t removed = 0;
  const auto remove_from = [&](const std::string& folder, auto is_ours) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(folder));
    for (const std::string& name : names) {
      if (!is_ours(name)) continue;
      PHIMAP_ASSIGN_OR_RETURN(const bool gone, RemoveOld(absl::StrCat(folder, "/", name), before));
      removed += gone ? 1 : 0;
    }
    return absl::OkStatus();
  };
  PHIMAP_RETURN_IF_ERROR(remove_from(quarantine_path_, &IsSha256Hex));
  PHIMAP_RETURN_IF_ERROR(remove_from(
      temporary_path_, [](absl::string_view name) { return absl::EndsWith(name, ".part"); }));
  return removed;
}

}  // namespace phimap
