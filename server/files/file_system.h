// The part of a file system that the store needs, as an interface: tests record its calls and make
// them fail.
//
// Errors carry the path, the operation and the remedy:
//   NOT_FOUND (no such file), ALREADY_EXISTS, RESOURCE_EXHAUSTED (disk or quota full, too many open
//   files), FAILED_PRECONDITION (read-only, no permission, not a directory, locked), UNAVAILABLE
//   (the disk reports an error).
#ifndef PHIMAP_SERVER_FILES_FILE_SYSTEM_H_
#define PHIMAP_SERVER_FILES_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// A new file being written. Destruction without Close closes it and drops the error. One thread at
// a time.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Writes all of `bytes` at the end, or fails; how much was written is then unknown.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes everything appended durable. After a failure the file is worth nothing: a second Sync can
  // succeed without the data being on disk, so the caller removes the file instead.
  virtual absl::Status Sync() = 0;
  // REQUIRES: not called before.
  virtual absl::Status Close() = 0;
};

// A file being read from its start. The file stays readable when it is removed meanwhile. One
// thread at a time.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // The next bytes, `limit_bytes` of them unless the file ends before; empty at its end.
  virtual absl::StatusOr<std::string> Read(int64_t limit_bytes) = 0;
};

// Holds a lock until destroyed, or until the process ends for any reason.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FileFacts {
  int64_t size_bytes = 0;
  // When its content was last written.
  absl::Time write_time;
  // When it was last written, renamed or otherwise changed.
  absl::Time change_time;
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // OK when the directory exists already. Creates no parents.
  virtual absl::Status CreateDir(const std::string& path) = 0;
  // Makes a directory that is closed to all other users (mode 0700), and closes one that is there.
  // FAILED_PRECONDITION for another user's.
  virtual absl::Status CreatePrivateDir(const std::string& path) = 0;
  // Creates a file that must not exist yet.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(
      const std::string& path) = 0;
  // Atomic; replaces `to`.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes the entries of a directory durable: files created in, renamed into and removed from it.
  // FAILED_PRECONDITION for one that may be entered and not listed.
  virtual absl::Status SyncDir(const std::string& path) = 0;
  // Makes everything durable that was written to the file system on which this directory lies.
  virtual absl::Status SyncFileSystem(const std::string& directory) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Names of the entries without "." and "..", sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  virtual absl::StatusOr<int64_t> SizeBytes(const std::string& path) = 0;
  virtual absl::StatusOr<FileFacts> Facts(const std::string& path) = 0;
  // The whole file. More than `limit_bytes`: OUT_OF_RANGE, before anything is allocated.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) = 0;
  // `bytes` of the file from `offset`; fewer where it ends before.
  virtual absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset,
                                                int64_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> NewReadableFile(
      const std::string& path) = 0;
  // Takes an exclusive lock on `path` without waiting, and writes the pid of this process into it.
  // Held by another (also within this process): FAILED_PRECONDITION with the holder's pid when it
  // can be read.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// The real one. Never destroyed.
FileSystem* PosixFileSystem();

// The error of a system call. REQUIRES: error_number is not 0.
absl::Status FileError(int error_number, absl::string_view operation, absl::string_view path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_FILES_FILE_SYSTEM_H_
