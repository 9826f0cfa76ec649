// A copy of the audit in a file, for those who collect logs: a line of JSON an entry (JsonOf), in
// the order of the entries' numbers, of all servers that share the store.
//
// Guarantees: no change is made by this server while the file lacks an entry that it could not
// write. So the file lacks at most what was committed while it was being written, and gets it as
// soon as it can be written again: after a crash, at the next start. An entry is written once, also
// across starts: `PATH.position` says which is the last one. If the store does not have that entry,
// because it was restored or is another one, the log says so, and what was changed since the last
// entry's time follows. A file that was renamed or removed is begun anew. One that another server
// writes, or that is no such file, is refused.
// Thread-safe.
#ifndef PHIMAP_SERVER_STORE_AUDIT_FILE_H_
#define PHIMAP_SERVER_STORE_AUDIT_FILE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/thread/mutex.h"
#include "server/observe/log.h"
#include "server/store/store.h"

namespace phimap {

class AuditFile {
 public:
  // Opens the file, which only its owner can read if it is new, and copies what it lacks. Then
  // follows the store, also the changes of other servers. A store that is unavailable and a disk
  // that is full are no errors here. Blocking. Both must outlive the result, which must outlive the
  // calls of the store. FAILED_PRECONDITION or, if the file cannot be opened, UNAVAILABLE
  // (AUDIT_LOG_NOT_WRITABLE), and other errors of the store.
  static absl::StatusOr<std::unique_ptr<AuditFile>> Open(const std::string& path, Store& store,
                                                         const Logger& logger);
  ~AuditFile();
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

  // False while an entry cannot be written, so that this server makes no changes.
  bool writable() const { return writable_.load(std::memory_order_relaxed); }

 private:
  AuditFile(std::string path, Store& store, const Logger& logger);

  // OK if the file has all entries that this server tried to copy. Otherwise tries again, and
  // returns UNAVAILABLE (AUDIT_LOG_NOT_WRITABLE) if that fails.
  absl::Status Check() ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies new entries. An error is logged, and Check returns it.
  absl::Status Copy() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CopyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks that the store has the last entry of the file; if not, makes `query` that for what was
  // changed after it.
  absl::Status FindPlace(AuditQuery& query) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Opens the file if it is not open, or if its name means another file now.
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Append(const std::string& lines) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadPosition() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WritePosition() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Failed(const std::string& what, int error) const;
  void Follow() ABSL_LOCKS_EXCLUDED(wake_mutex_);

  const std::string path_;
  Store& store_;
  const Logger& logger_;
  Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  // Size of the file up to the end of its last whole line.
  int64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number and time of the last entry in the file, and the number that PATH.position has.
  int64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time position_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t noted_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status state_ ABSL_GUARDED_BY(mutex_);
  // What state_ says, for those who must not wait for the mutex.
  std::atomic<bool> writable_{true};
  Mutex wake_mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(wake_mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_AUDIT_FILE_H_
