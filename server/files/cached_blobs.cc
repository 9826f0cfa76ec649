#include "server/files/cached_blobs.h"

#include <optional>

#include "core/status/status_macros.h"

namespace phimap {

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
