// Blobs of another store, with local copies of the blobs that were read or written.
//
// Read compares a copy with its SHA-256, and fetches the blob again if the copy is damaged. Blobs
// are immutable, so a copy is never out of date. But a copy may outlive its blob, so callers must
// make sure that a version with this digest exists.
#ifndef PHIMAP_SERVER_FILES_CACHED_BLOBS_H_
#define PHIMAP_SERVER_FILES_CACHED_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/files/artifact_cache.h"
#include "server/store/blobs.h"

namespace phimap {

class CachedBlobs final : public Blobs {
 public:
  CachedBlobs(std::unique_ptr<Blobs> origin, std::shared_ptr<ArtifactCache> cache)
      : origin_(std::move(origin)), cache_(std::move(cache)) {}

  // Writes to the origin, and then to the cache, because the version will soon be requested.
  absl::Status Write(absl::string_view digest, absl::string_view content) override;
  absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) override;
  absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                        int64_t offset, int64_t bytes) override;
  // Reads from the origin and not through the cache, because an export is read only once, and would
  // evict copies that are served.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                             int64_t size_bytes) override;
  absl::Status Remove(absl::string_view digest) override;
  // Lists the origin's blobs. Copies of removed blobs stay in the cache until they are evicted.
  absl::StatusOr<std::vector<StoredBlob>> List() override { return origin_->List(); }
  absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) override {
    return origin_->Contains(session, digest);
  }
  absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                    absl::Time before) override {
    return origin_->RemoveUnused(session, digest, before);
  }
  absl::Status SetAside(absl::string_view digest) override { return origin_->SetAside(digest); }
  absl::StatusOr<int64_t> RemoveRemains(absl::Time before) override {
    return origin_->RemoveRemains(before);
  }

 private:
  const std::unique_ptr<Blobs> origin_;
  const std::shared_ptr<ArtifactCache> cache_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_FILES_CACHED_BLOBS_H_
