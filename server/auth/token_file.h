// The file of bearer tokens, read again when it changes.
//
// Guarantees: a file that cannot be read, that others may read or write, or that is wrong changes
// nothing: the tokens before it stay in force and the log says why. No token is ever logged.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_AUTH_TOKEN_FILE_H_
#define PHIMAP_SERVER_AUTH_TOKEN_FILE_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/auth/token_table.h"
#include "server/observe/log.h"
#include "server/sync/mutex.h"

namespace phimap {

class TokenFile {
 public:
  // Reads `path` and looks every second whether it changed. INVALID_ARGUMENT when it is wrong,
  // FAILED_PRECONDITION when it cannot be read or when others may write it, or read a token in it.
  // `logger` outlives the file.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         const Logger& logger);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::shared_ptr<const TokenTable> table() const;

  // Looks now.
  void Refresh();

 private:
  // Tells one state of the file from another.
  struct Stamp {
    int64_t device = 0;
    int64_t inode = 0;
    int64_t size_bytes = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };

  TokenFile(std::string path, const Logger& logger);
  static Stamp StampOf(const std::string& path);
  absl::Status Load(const Stamp& stamp);
  void Watch();

  const std::string path_;
  const Logger& logger_;
  // Held while the file is looked at, so that two threads do not load it at once.
  Mutex refresh_;
  Stamp loaded_ ABSL_GUARDED_BY(refresh_);
  mutable Mutex mutex_;
  CondVar stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mutex_);
  // Last, so that what it uses is there before it.
  std::thread watcher_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_TOKEN_FILE_H_
