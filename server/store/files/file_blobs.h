// Blobs in files.
//
// Layout: ROOT/blobs/ab/abcdef… (all 64 digits; the first two are the name of a subfolder, the
// shard), ROOT/tmp for files being written, ROOT/quarantine for blobs that were removed and wait to
// be unlinked.
//
// Invariants:
//   1. A file under blobs/ is complete: it was fsynced under another name and then renamed.
//   2. When Write returns OK, the blob survives a power failure: the file, its entry in the shard
//      and the shard's entry in blobs/ are all synced. Each process remembers by itself which
//      shards' entries are durable. It does not conclude that from the disk: another writer may
//      have created a shard without having synced it yet, or may have crashed before it did.
//   3. Files are not changed in place, so a reader never sees a partial blob. Writing a blob again
//      replaces the file by an equal one (and repairs a damaged one).
//
// Thread-safety: all methods may be called from any thread, and from several processes.
#ifndef PHIMAP_SERVER_STORE_FILES_FILE_BLOBS_H_
#define PHIMAP_SERVER_STORE_FILES_FILE_BLOBS_H_

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "server/store/blobs.h"
#include "server/store/files/file_system.h"

namespace phimap {

class FileBlobs final : public Blobs {
 public:
  // `file_system` must outlive this object. Does not access the file system yet.
  FileBlobs(std::string root, FileSystem* file_system);

  // Creates blobs/, tmp/ and quarantine/ durably.
  absl::Status CreateDirectories();

  // On error, leaves no temporary file behind, unless removing that file fails too.
  absl::Status Write(absl::string_view digest, absl::string_view content) override;
  absl::Status WriteFrom(absl::string_view digest, ArtifactReader& content) override;
  absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) override;
  absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                        int64_t offset, int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                             int64_t size_bytes) override;
  absl::Status Remove(absl::string_view digest) override;
  absl::StatusOr<std::vector<StoredBlob>> List() override;
  absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) override;
  // Moves the blob into quarantine/.
  absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                    absl::Time before) override;
  // Moves the blob to quarantine/DIGEST.damaged, where it stays until an operator removes it.
  absl::Status SetAside(absl::string_view digest) override;
  // Removes blobs in quarantine/ and .part files in tmp/, except those changed after `before`.
  // Other files stay.
  absl::StatusOr<int64_t> RemoveRemains(absl::Time before) override;

  // Writes a small file next to the shards, durably and atomically.
  absl::Status WriteNamed(absl::string_view name, absl::string_view content);

  absl::StatusOr<bool> HasBlobs();
  std::string BlobPath(absl::string_view digest) const;
  const std::string& blobs_path() const { return blobs_path_; }
  const std::string& temporary_path() const { return temporary_path_; }

 private:
  absl::StatusOr<std::vector<std::string>> ListDigests();
  // Removes a file unless it was changed after `before`. Returns whether it was removed.
  absl::StatusOr<bool> RemoveOld(const std::string& path, absl::Time before);
  absl::Status MakeShardDurable(absl::string_view digest);
  // Writes a temporary file with `fill`, syncs and closes it, renames it to `path`, and syncs
  // `directory`.
  absl::Status WriteFile(const std::string& path, const std::string& directory,
                         absl::FunctionRef<absl::Status(WritableFile&)> fill);
  std::string ShardPath(absl::string_view digest) const;

  const std::string root_;
  const std::string blobs_path_;
  const std::string temporary_path_;
  const std::string quarantine_path_;
  FileSystem* const file_system_;
  std::atomic<int64_t> next_temporary_{0};

  Mutex mutex_;
  std::bitset<256> durable_shards_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_FILES_FILE_BLOBS_H_
