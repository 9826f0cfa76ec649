// The contents of a folder that survive a power cut: those that were synced.
//
// A file has the content that it had at its last fsync, or none; a directory the entries that it
// had at its last one. SQLite syncs the directory of a log when it first syncs the log.
#ifndef PHIMAP_TESTS_SERVER_SQLITE_LOSSY_DISK_H_
#define PHIMAP_TESTS_SERVER_SQLITE_LOSSY_DISK_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/sqlite/fault_plan.h"

namespace phimap {

// Follows the operations of a plan. Not thread-safe: one thread works on the disk.
class LossyDisk {
 public:
  // The durable files at one moment.
  struct Image {
    std::map<std::string, std::map<std::string, ino_t>> directories;  // by path, entries by name
    std::map<ino_t, std::shared_ptr<const std::string>> contents;
  };

  // Watches everything under `root`, which is durable itself. Sets `plan->after`, and outlives its
  // use.
  LossyDisk(std::string root, FaultPlan* plan);
  ~LossyDisk();
  LossyDisk(const LossyDisk&) = delete;
  LossyDisk& operator=(const LossyDisk&) = delete;

  const Image& image() const { return image_; }
  // Called after each operation.
  std::function<void()> after;
  // Makes `folder` what the power cut leaves of `root`.
  void Restore(const Image& image, const std::string& folder) const;

 private:
  void Follow(const std::string& operation, const std::string& path);
  void SyncFile(const std::string& path);
  void SyncDirectory(const std::string& path);
  // 0 if there is none. Keeps the file open, so that its number is not given to another.
  ino_t NumberOf(const std::string& path);
  void RestoreDirectory(const Image& image, const std::string& path,
                        const std::string& folder) const;

  const std::string root_;
  FaultPlan* const plan_;
  Image image_;
  std::map<ino_t, int> kept_;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_SQLITE_LOSSY_DISK_H_
