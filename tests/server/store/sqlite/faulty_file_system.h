// A FileSystem that records operations that change the disk, and fails them as planned.
#ifndef PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULTY_FILE_SYSTEM_H_
#define PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULTY_FILE_SYSTEM_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/store/files/file_system.h"
#include "tests/server/store/sqlite/fault_plan.h"

namespace phimap {

// Paths are recorded relative to `root`. `base` and `plan` must outlive the object.
class FaultyFileSystem : public FileSystem {
 public:
  FaultyFileSystem(FileSystem* base, std::string root, FaultPlan* plan)
      : base_(base), root_(std::move(root)), plan_(plan) {}

  absl::Status CreateDir(const std::string& path) override;
  absl::Status CreatePrivateDir(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncDir(const std::string& path) override;
  absl::Status SyncFileSystem(const std::string& directory) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& path) override;
  absl::StatusOr<FileFacts> Facts(const std::string& path) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) override;
  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset,
                                        int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> NewReadableFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

  // Runs `call` unless the plan makes the operation fail. The files of this file system call it,
  // too.
  absl::Status Run(const std::string& operation, const std::string& path,
                   const std::function<absl::Status()>& call);

 private:
  FileSystem* const base_;
  const std::string root_;
  FaultPlan* const plan_;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULTY_FILE_SYSTEM_H_
