// A cache of artifacts in a folder that only this server uses. Its size is limited in bytes; the
// least recently used copies are evicted first.
//
// This is a cache, not a store: nothing in it is synced, and all of it may be lost or damaged at
// any time. Get checks each copy against its SHA-256; GetRange does not.
//
// Layout: FOLDER/artifacts (mode 0700) with a file for each artifact, whose name is the artifact's
// digest, and FOLDER/artifacts/lock, which keeps a second server out.
//
// Thread-safety: all methods may be called from any thread. Blocking: they wait for the disk.
#ifndef PHIMAP_SERVER_STORE_FILES_ARTIFACT_CACHE_H_
#define PHIMAP_SERVER_STORE_FILES_ARTIFACT_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "server/observe/log.h"
#include "server/store/blobs.h"
#include "server/store/files/file_system.h"

namespace phimap {

class ArtifactCache {
 public:
  // A file in the folder that belongs to the cache's owner (KnownNamesFile).
  static constexpr absl::string_view kNamesFile = "names";

  // Counts so far, and the current contents.
  struct Statistics {
    int64_t bytes = 0;
    int64_t artifacts = 0;
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t evictions = 0;
    // Copies that did not match their digest, and were removed.
    int64_t damaged = 0;
    // Copies that could not be written.
    int64_t unwritten = 0;
  };

  // Opens the cache in `folder`, which is created if missing, with the copies that an earlier run
  // left there. `file_system` and `logger` must outlive the cache. Errors: FAILED_PRECONDITION (the
  // folder belongs to another server or user, or is read-only), RESOURCE_EXHAUSTED, UNAVAILABLE.
  // REQUIRES: max_bytes >= 0.
  static absl::StatusOr<std::unique_ptr<ArtifactCache>> Open(const std::string& folder,
                                                             int64_t max_bytes,
                                                             FileSystem* file_system,
                                                             const Logger& logger);

  // Returns a complete and undamaged copy, or nullopt if there is none.
  std::optional<std::string> Get(absl::string_view digest, int64_t size_bytes);
  // Returns `bytes` bytes of a copy from `offset`, without checking the digest, or nullopt if there
  // is no copy. REQUIRES: offset + bytes <= size_bytes.
  std::optional<std::string> GetRange(absl::string_view digest, int64_t size_bytes, int64_t offset,
                                      int64_t bytes);
  // Keeps a copy. No-op if it does not fit. If the disk fails, logs that, and keeps none. REQUIRES:
  // digest == Sha256Hex(content).
  void Put(absl::string_view digest, absl::string_view content);
  // Removes a copy.
  void Drop(absl::string_view digest);

  Statistics statistics() const;

 private:
  struct Copy {
    std::string digest;
    int64_t size_bytes = 0;
  };
  // Most recently used first.
  using Copies = std::list<Copy>;

  ArtifactCache(std::string folder, int64_t max_bytes, FileSystem* file_system,
                std::unique_ptr<FileLock> lock, const Logger& logger);

  absl::Status TakeStock();
  std::string PathOf(absl::string_view digest) const;
  // Returns whether there is a copy of this size, and makes it the most recently used.
  bool Touch(absl::string_view digest, int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountHit(bool hit) ABSL_LOCKS_EXCLUDED(mutex_);
  void Insert(absl::string_view digest, int64_t size_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Copies::iterator copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Evicts the least recently used copies until `bytes` more bytes fit.
  void FreeCapacity(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const int64_t max_bytes_;
  FileSystem* const file_system_;
  const std::unique_ptr<FileLock> lock_;
  const Logger& logger_;

  mutable Mutex mutex_;
  Copies copies_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Copies::iterator> index_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  int64_t next_temporary_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Blobs of another store, with local copies of the blobs that were read or written.
//
// Read compares a copy with its SHA-256, and fetches the blob again if the copy is damaged. Blobs
// are immutable, so a copy is never out of date. But a copy may outlive its blob, so callers must
// make sure that a version with this digest exists.
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

#endif  // PHIMAP_SERVER_STORE_FILES_ARTIFACT_CACHE_H_
