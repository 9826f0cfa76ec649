// Blobs in memory, for tests of what a store does in its database.
#ifndef PHIMAP_TESTS_CONTRACT_MEMORY_BLOBS_H_
#define PHIMAP_TESTS_CONTRACT_MEMORY_BLOBS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/thread/mutex.h"
#include "server/store/blobs.h"

namespace phimap {

// Thread-safe. Only what publishing calls is there.
class MemoryBlobs final : public Blobs {
 public:
  absl::Status Write(absl::string_view digest, absl::string_view content) override {
    MutexLock lock(&mutex_);
    blobs_[std::string(digest)] = std::string(content);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(absl::string_view digest, int64_t) override {
    MutexLock lock(&mutex_);
    const auto found = blobs_.find(std::string(digest));
    if (found == blobs_.end()) return absl::DataLossError("missing");
    return found->second;
  }
  absl::StatusOr<bool> Contains(SqlSession&, absl::string_view digest) override {
    MutexLock lock(&mutex_);
    return blobs_.count(std::string(digest)) > 0;
  }
  absl::StatusOr<std::string> ReadRange(absl::string_view, int64_t, int64_t, int64_t) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view, int64_t) override {
    return absl::UnimplementedError("");
  }
  absl::Status Remove(absl::string_view) override { return absl::UnimplementedError(""); }
  absl::StatusOr<std::vector<StoredBlob>> List() override { return absl::UnimplementedError(""); }
  absl::StatusOr<bool> RemoveUnused(SqlSession&, absl::string_view, absl::Time) override {
    return absl::UnimplementedError("");
  }
  absl::Status SetAside(absl::string_view) override { return absl::UnimplementedError(""); }
  absl::StatusOr<int64_t> RemoveRemains(absl::Time) override {
    return absl::UnimplementedError("");
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::string> blobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_CONTRACT_MEMORY_BLOBS_H_
