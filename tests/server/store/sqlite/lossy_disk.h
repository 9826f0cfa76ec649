// Models a disk that loses everything that was not synced before a power cut.
//
// A file keeps the content of its last fsync, if there was one. A directory keeps the entries that
// it had at the last fsync of the directory itself. When SQLite first syncs a log, it also syncs
// the log's directory.
#ifndef PHIMAP_TESTS_SERVER_STORE_SQLITE_LOSSY_DISK_H_
#define PHIMAP_TESTS_SERVER_STORE_SQLITE_LOSSY_DISK_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/store/sqlite/fault_plan.h"

namespace phimap {

// Follows the operations that `plan` records. Not thread-safe: only one thread may work on the
// disk.
class LossyDisk {
 public:
  // The durable files at one moment.
  struct Image {
    std::map<std::string, std::map<std::string, ino_t>> directories;  // by path, then by name
    std::map<ino_t, std::shared_ptr<const std::string>> contents;
  };

  // Watches everything under `root`. The folder `root` itself counts as durable. Sets
  // `plan->after`, and must therefore live as long as the plan is used.
  LossyDisk(std::string root, FaultPlan* plan);
  ~LossyDisk();
  LossyDisk(const LossyDisk&) = delete;
  LossyDisk& operator=(const LossyDisk&) = delete;

  const Image& image() const { return image_; }
  // Called after each operation.
  std::function<void()> after;
  // Fills `folder` with what a power cut would leave of `root`.
  void Restore(const Image& image, const std::string& folder) const;

 private:
  void Follow(const std::string& operation, const std::string& path);
  void SyncFile(const std::string& path);
  void SyncDirectory(const std::string& path);
  // The inode number of a file; 0 if there is no file. Keeps the file open, so that no other file
  // can get the same number.
  ino_t NumberOf(const std::string& path);
  void RestoreDirectory(const Image& image, const std::string& path,
                        const std::string& folder) const;

  const std::string root_;
  FaultPlan* const plan_;
  Image image_;
  std::map<ino_t, int> kept_;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_STORE_SQLITE_LOSSY_DISK_H_
