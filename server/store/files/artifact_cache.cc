#include "server/store/files/artifact_cache.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "server/store/sha256.h"

namespace phimap {

namespace {

constexpr char kLockName[] = "lock";

}  // namespace

ArtifactCache::ArtifactCache(std::string folder, int64_t max_bytes, FileSystem* file_system,
                             std::unique_ptr<FileLock> lock, const Logger& logger)
    : folder_(std::move(folder)),
      max_bytes_(max_bytes),
      file_system_(file_system),
      lock_(std::move(lock)),
      logger_(logger) {}

absl::StatusOr<std::unique_ptr<ArtifactCache>> ArtifactCache::Open(const std::string& folder,
                                                                   int64_t max_bytes,
                                                                   FileSystem* file_system,
                                                                   const Logger& logger) {
  PHIMAP_CHECK(max_bytes >= 0);
  PHIMAP_RETURN_IF_ERROR(file_system->CreateDir(folder));
  // Uses a private folder inside, because the outer folder may be a volume that another user owns.
  std::string artifacts = absl::StrCat(folder, "/artifacts");
  PHIMAP_RETURN_IF_ERROR(file_system->CreatePrivateDir(artifacts));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                          file_system->Lock(absl::StrCat(artifacts, "/", kLockName)));
  std::unique_ptr<ArtifactCache> cache(
      new ArtifactCache(std::move(artifacts), max_bytes, file_system, std::move(lock), logger));
  PHIMAP_RETURN_IF_ERROR(cache->TakeStock());
  return cache;
}

absl::Status ArtifactCache::TakeStock() {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(folder_));
  MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    if (name == kLockName || name == kNamesFile) continue;
    const std::string path = absl::StrCat(folder_, "/", name);
    const absl::StatusOr<int64_t> size = file_system_->SizeBytes(path);
    if (IsSha256Hex(name) && size.ok()) {
      Insert(name, *size);
    } else {  // An interrupted copy.
      PHIMAP_RETURN_IF_ERROR(file_system_->Remove(path));
    }
  }
  FreeCapacity(0);
  statistics_.evictions = 0;
  return absl::OkStatus();
}

std::string ArtifactCache::PathOf(absl::string_view digest) const {
  PHIMAP_CHECK(IsSha256Hex(digest));
  return absl::StrCat(folder_, "/", digest);
}

void ArtifactCache::Insert(absl::string_view digest, int64_t size_bytes) {
  copies_.push_front({std::string(digest), size_bytes});
  index_[digest] = copies_.begin();
  statistics_.bytes += size_bytes;
  ++statistics_.artifacts;
}

void ArtifactCache::Forget(Copies::iterator copy) {
  statistics_.bytes -= copy->size_bytes;
  --statistics_.artifacts;
  index_.erase(copy->digest);
  copies_.erase(copy);
}

void ArtifactCache::FreeCapacity(int64_t bytes) {
  while (!copies_.empty() && statistics_.bytes + bytes > max_bytes_) {
    const auto oldest = std::prev(copies_.end());
    // If the file cannot be removed, it stays, and the next start finds it again.
    file_system_->Remove(PathOf(oldest->digest)).IgnoreError();
    Forget(oldest);
    ++statistics_.evictions;
  }
}

bool ArtifactCache::Touch(absl::string_view digest, int64_t size_bytes) {
  MutexLock lock(&mutex_);
  const auto found = index_.find(digest);
  if (found == index_.end() || found->second->size_bytes != size_bytes) return false;
  copies_.splice(copies_.begin(), copies_, found->second);
  return true;
}

void ArtifactCache::CountHit(bool hit) {
  MutexLock lock(&mutex_);
  ++(hit ? statistics_.hits : statistics_.misses);
}

std::optional<std::string> ArtifactCache::Get(absl::string_view digest, int64_t size_bytes) {
  if (!Touch(digest, size_bytes)) {
    CountHit(false);
    return std::nullopt;
  }
  // The copy may be evicted before it is read; then the file is not found.
  absl::StatusOr<std::string> content = file_system_->ReadFile(PathOf(digest), size_bytes);
  if (content.ok() && Sha256Hex(*content) == digest) {
    CountHit(true);
    return *std::move(content);
  }
  CountHit(false);
  if (!absl::IsNotFound(content.status())) {
    MutexLock lock(&mutex_);
    ++statistics_.damaged;
  }
  Drop(digest);
  return std::nullopt;
}

std::optional<std::string> ArtifactCache::GetRange(absl::string_view digest, int64_t size_bytes,
                                                   int64_t offset, int64_t bytes) {
  if (!Touch(digest, size_bytes)) return std::nullopt;
  absl::StatusOr<std::string> part = file_system_->ReadRange(PathOf(digest), offset, bytes);
  if (!part.ok() || static_cast<int64_t>(part->size()) != bytes) return std::nullopt;
  return *std::move(part);
}

void ArtifactCache::Put(absl::string_view digest, absl::string_view content) {
  const auto size_bytes = static_cast<int64_t>(content.size());
  if (size_bytes > max_bytes_ || Touch(digest, size_bytes)) return;
  std::string temporary;
  {
    MutexLock lock(&mutex_);
    FreeCapacity(size_bytes);
    temporary = absl::StrCat(PathOf(digest), ".", next_temporary_++);
  }
  const auto write = [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                            file_system_->NewWritableFile(temporary));
    PHIMAP_RETURN_IF_ERROR(file->Append(content));
    PHIMAP_RETURN_IF_ERROR(file->Close());
    return file_system_->Rename(temporary, PathOf(digest));
  };
  const absl::Status written = write();
  if (!written.ok()) {
    file_system_->Remove(temporary).IgnoreError();
    logger_.Log(LogLevel::kWarning, "cache_not_written",
                {{"error", std::string(written.message())},
                 {"help",
                  "the artifact is served, but is fetched from the database again when it is next "
                  "loaded"}});
  }
  MutexLock lock(&mutex_);
  if (!written.ok()) {
    ++statistics_.unwritten;
  } else if (!index_.contains(digest)) {  // Otherwise another thread was faster.
    FreeCapacity(size_bytes);
    Insert(digest, size_bytes);
  }
}

void ArtifactCache::Drop(absl::string_view digest) {
  MutexLock lock(&mutex_);
  const auto found = index_.find(digest);
  if (found == index_.end()) return;
  file_system_->Remove(PathOf(digest)).IgnoreError();
  Forget(found->second);
}

ArtifactCache::Statistics ArtifactCache::statistics() const {
  MutexLock lock(&mutex_);
  return statistics_;
}

absl::Status CachedBlobs::Write(absl::string_view digest, absl::string_view content) {
  PHIMAP_RETURN_IF_ERROR(origin_->Write(digest, content));
  cache_->Put(digest, content);
  return absl::OkStatus();
}

absl::StatusOr<std::string> CachedBlobs::Read(absl::string_view digest, int64_t size_bytes) {
  if (std::optional<std::string> copy = cache_->Get(digest, size_bytes)) return *std::move(copy);
  PHIMAP_ASSIGN_OR_RETURN(std::string content, origin_->Read(digest, size_bytes));
  cache_->Put(digest, content);
  return content;
}

absl::StatusOr<std::string> CachedBlobs::ReadRange(absl::string_view digest, int64_t size_bytes,
                                                   int64_t offset, int64_t bytes) {
  if (std::optional<std::string> part = cache_->GetRange(digest, size_bytes, offset, bytes)) {
    return *std::move(part);
  }
  return origin_->ReadRange(digest, size_bytes, offset, bytes);
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> CachedBlobs::OpenReader(absl::string_view digest,
                                                                        int64_t size_bytes) {
  return origin_->OpenReader(digest, size_bytes);
}

absl::Status CachedBlobs::Remove(absl::string_view digest) {
  cache_->Drop(digest);
  return origin_->Remove(digest);
}

}  // namespace phimap
