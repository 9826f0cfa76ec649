// Notices when one of a few files changes: when it is written to, replaced, removed or created.
//
// Example:
//   FileWatch watch({path}, [&] { Reload(); });
//   PHIMAP_RETURN_IF_ERROR(Load());  // changes from here on are noticed
//   watch.Start();
//
// A file that is written in place may be seen half-written. When the rest of it is written, that is
// noticed as another change.
// Thread-safety: Look may be called from any thread.
#ifndef PHIMAP_SERVER_ADMISSION_FILE_WATCH_H_
#define PHIMAP_SERVER_ADMISSION_FILE_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/thread/mutex.h"

namespace phimap {

class FileWatch {
 public:
  // Calls `changed` when a file has changed, one call at a time.
  FileWatch(std::vector<std::string> paths, std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Starts a thread that checks the files every 400 milliseconds. Must be called at most once.
  void Start();
  // Checks the files now.
  void Look();

 private:
  // Identifies one state of a file. All zero if the file does not exist.
  struct Stamp {
    int64_t device = 0;
    int64_t inode = 0;
    int64_t size_bytes = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };

  static Stamp StampOf(const std::string& path);
  std::vector<Stamp> Stamps() const;
  void Run();

  const std::vector<std::string> paths_;
  const std::function<void()> changed_;
  // Held while the files are checked and `changed_` runs.
  Mutex looking_;
  std::vector<Stamp> seen_ ABSL_GUARDED_BY(looking_);
  Mutex mutex_;
  CondVar stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_FILE_WATCH_H_
