// Tells when one of a few files changed: written to, replaced, removed or made.
//
// Example:
//   FileWatch watch({path}, [&] { Reload(); });
//   PHIMAP_RETURN_IF_ERROR(Load());  // what changes from here on is told
//   watch.Start();
//
// A file that is written in place can be seen half-written: the rest counts as another change.
// Thread-safety: Look from any thread.
#ifndef PHIMAP_SERVER_AUTH_FILE_WATCH_H_
#define PHIMAP_SERVER_AUTH_FILE_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "server/sync/mutex.h"

namespace phimap {

class FileWatch {
 public:
  // Calls `changed`, one call at a time.
  FileWatch(std::vector<std::string> paths, std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Looks once a second from now on, on its own thread. At most once.
  void Start();
  // Looks now.
  void Look();

 private:
  // Tells one state of a file from another; all zero when it is not there.
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
  // Held while it looks and tells.
  Mutex looking_;
  std::vector<Stamp> seen_ ABSL_GUARDED_BY(looking_);
  Mutex mutex_;
  CondVar stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_FILE_WATCH_H_
