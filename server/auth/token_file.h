// The file of bearer tokens, read again when it changes.
//
// Guarantees: a file that cannot be read, that others may read or write, or that is malformed
// changes nothing: the previous tokens stay in force and the log gives the reason. No token is ever
// logged.
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
  // Reads `path` and looks every second whether it changed. INVALID_ARGUMENT when it is wrong,
  // FAILED_PRECONDITION when it cannot be read or when others may write it, or read a token in it.
  // `logger` outlives the file.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         const Logger& logger);
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::shared_ptr<const TokenTable> table() const;

  // Counts from now on how often the changed file could not be used. It outlives this.
  void CountFailures(prometheus::Counter* failures) { failures_.store(failures); }

  // Looks now.
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
  // Last member: it calls Reload until it is destroyed.
  FileWatch watch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_TOKEN_FILE_H_
