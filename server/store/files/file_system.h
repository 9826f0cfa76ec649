// The part of a file system that the store needs. It is an interface so that tests can record its
// calls and make them fail.
//
// Errors carry the path, the operation and the remedy:
//   NOT_FOUND (no such file), ALREADY_EXISTS, RESOURCE_EXHAUSTED (disk or quota full, too many open
//   files), FAILED_PRECONDITION (read-only, no permission, not a directory, locked), UNAVAILABLE
//   (the disk reports an error).
#ifndef PHIMAP_SERVER_STORE_FILES_FILE_SYSTEM_H_
#define PHIMAP_SERVER_STORE_FILES_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// A new file that is being written. Destruction without Close closes the file and ignores errors.
// Not thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Appends all of `bytes`. After an error, it is unknown how much was written.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes everything appended durable. After an error the file is useless: a second Sync may
  // succeed although the data is not on disk. So the caller must remove the file instead.
  virtual absl::Status Sync() = 0;
  // Closes the file. REQUIRES: Close was not called before.
  virtual absl::Status Close() = 0;
};

// A file that is read from its start. It stays readable if it is removed meanwhile. Not
// thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // Returns the next `limit_bytes` bytes, fewer if the file ends before, or none at its end.
  virtual absl::StatusOr<std::string> Read(int64_t limit_bytes) = 0;
};

// Holds a lock until it is destroyed or the process ends for any reason.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FileFacts {
  int64_t size_bytes = 0;
  // Time at which the content was last written.
  absl::Time write_time;
  // Time at which the file was last written, renamed or otherwise changed.
  absl::Time change_time;
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates a directory. Returns OK if it already exists. Does not create parents.
  virtual absl::Status CreateDir(const std::string& path) = 0;
  // Creates a directory that no other user can access (mode 0700), or gives an existing directory
  // this mode. FAILED_PRECONDITION if it belongs to another user.
  virtual absl::Status CreatePrivateDir(const std::string& path) = 0;
  // Creates a file that must not exist yet.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(
      const std::string& path) = 0;
  // Renames a file atomically, and replaces `to` if it exists.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes the entries of a directory durable: the creation, renaming and removal of files in it.
  // FAILED_PRECONDITION for a directory that may be entered but not listed.
  virtual absl::Status SyncDir(const std::string& path) = 0;
  // Makes everything durable that was written to the file system that holds this directory.
  virtual absl::Status SyncFileSystem(const std::string& directory) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Returns the names of the entries without "." and "..", sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  virtual absl::StatusOr<int64_t> SizeBytes(const std::string& path) = 0;
  virtual absl::StatusOr<FileFacts> Facts(const std::string& path) = 0;
  // Returns the whole file. Returns OUT_OF_RANGE, before it allocates, if the file has more than
  // `limit_bytes` bytes.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) = 0;
  // Returns `bytes` bytes of the file from `offset`, or fewer if the file ends before.
  virtual absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset,
                                                int64_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> NewReadableFile(
      const std::string& path) = 0;
  // Takes an exclusive lock on `path` without waiting, and writes the pid of this process into it.
  // If the lock is held, even by this process, returns FAILED_PRECONDITION with the holder's pid if
  // that can be read.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// Returns the file system of the operating system. Never destroyed.
FileSystem* PosixFileSystem();

// Returns the error of a system call. REQUIRES: error_number is not 0.
absl::Status FileError(int error_number, absl::string_view operation, absl::string_view path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_FILES_FILE_SYSTEM_H_
