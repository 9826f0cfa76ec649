// The file of bearer tokens, which is read again when it changes.
//
// Guarantees: a changed file that is malformed, that cannot be read, or whose permissions are too
// wide has no effect: the previous tokens stay in force, and the log gives the reason. No token is
// ever logged.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_AUTH_TOKEN_FILE_H_
#define PHIMAP_SERVER_AUTH_TOKEN_FILE_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "prometheus/counter.h"
#include "server/auth/file_watch.h"
#include "server/auth/token_table.h"
#include "server/observe/log.h"
#include "server/sync/mutex.h"

namespace phimap {

class TokenFile {
 public:
  // Reads `path`, and checks every second whether it has changed. Returns INVALID_ARGUMENT if the
  // file is malformed, and FAILED_PRECONDITION if it cannot be read, if other users may write it,
  // or if other users may read a token in it. `logger` must outlive the result.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         const Logger& logger);
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::shared_ptr<const TokenTable> table() const;

  // Counts in `failures`, from now on, how often the changed file could not be used. `failures`
  // must outlive this object.
  void CountFailures(prometheus::Counter* failures) { failures_.store(failures); }

  // Checks the file now.
  void Refresh() { watch_.Look(); }

 private:
  TokenFile(std::string path, const Logger& logger);
  absl::Status Load();
  void Reload();

  const std::string path_;
  const Logger& logger_;
  std::atomic<prometheus::Counter*> failures_{nullptr};
  mutable Mutex mutex_;
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mutex_);
  // Declared last, so that it is destroyed first: until then it calls Reload, which uses the other
  // members.
  FileWatch watch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_TOKEN_FILE_H_
