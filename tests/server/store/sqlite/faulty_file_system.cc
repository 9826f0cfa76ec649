#include "tests/server/store/sqlite/faulty_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

class FaultyFile : public WritableFile {
 public:
  FaultyFile(std::unique_ptr<WritableFile> base, std::string path, FaultyFileSystem* file_system)
      : base_(std::move(base)), path_(std::move(path)), file_system_(file_system) {}

  absl::Status Append(absl::string_view bytes) override {
    return file_system_->Run("write", path_, [&] { return base_->Append(bytes); });
  }
  absl::Status Sync() override {
    return file_system_->Run("fsync", path_, [&] { return base_->Sync(); });
  }
  absl::Status Close() override {
    return file_system_->Run("close", path_, [&] { return base_->Close(); });
  }

 private:
  const std::unique_ptr<WritableFile> base_;
  const std::string path_;
  FaultyFileSystem* const file_system_;
};

}  // namespace

absl::Status FaultyFileSystem::Run(const std::string& operation, const std::string& path,
                                   const std::function<absl::Status()>& call) {
  const absl::string_view relative = absl::StripPrefix(absl::StripPrefix(path, root_), "/");
  const Fault fault = plan_->Step(absl::StrCat(operation, " ", relative));
  if (fault == Fault::kNone) {
    const absl::Status status = call();
    if (status.ok() && plan_->after) plan_->after(operation, path);
    return status;
  }
  if (fault == Fault::kErrorAfter) call().IgnoreError();
  return FileError(plan_->error_number(), operation, path);
}

absl::Status FaultyFileSystem::CreateDir(const std::string& path) {
  return Run("mkdir", path, [&] { return base_->CreateDir(path); });
}

absl::Status FaultyFileSystem::CreatePrivateDir(const std::string& path) {
  return Run("mkdir", path, [&] { return base_->CreatePrivateDir(path); });
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::NewWritableFile(
    const std::string& path) {
  std::unique_ptr<WritableFile> file;
  PHIMAP_RETURN_IF_ERROR(Run("create", path, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(file, base_->NewWritableFile(path));
    return absl::OkStatus();
  }));
  return std::make_unique<FaultyFile>(std::move(file), path, this);
}

absl::Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  return Run("rename to", to, [&] { return base_->Rename(from, to); });
}

absl::Status FaultyFileSystem::SyncDir(const std::string& path) {
  return Run("fsync directory", path, [&] { return base_->SyncDir(path); });
}

absl::Status FaultyFileSystem::SyncFileSystem(const std::string& directory) {
  return Run("sync file system", directory, [&] { return base_->SyncFileSystem(directory); });
}

absl::Status FaultyFileSystem::Remove(const std::string& path) {
  return Run("remove", path, [&] { return base_->Remove(path); });
}

absl::StatusOr<std::vector<std::string>> FaultyFileSystem::List(const std::string& path) {
  return base_->List(path);
}

absl::StatusOr<int64_t> FaultyFileSystem::SizeBytes(const std::string& path) {
  return base_->SizeBytes(path);
}

absl::StatusOr<FileFacts> FaultyFileSystem::Facts(const std::string& path) {
  return base_->Facts(path);
}

absl::StatusOr<std::string> FaultyFileSystem::ReadFile(const std::string& path,
                                                       int64_t limit_bytes) {
  return base_->ReadFile(path, limit_bytes);
}

absl::StatusOr<std::string> FaultyFileSystem::ReadRange(const std::string& path, int64_t offset,
                                                        int64_t bytes) {
  return base_->ReadRange(path, offset, bytes);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultyFileSystem::NewReadableFile(
    const std::string& path) {
  return base_->NewReadableFile(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultyFileSystem::Lock(const std::string& path) {
  std::unique_ptr<FileLock> lock;
  PHIMAP_RETURN_IF_ERROR(Run("lock", path, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(lock, base_->Lock(path));
    return absl::OkStatus();
  }));
  return lock;
}

}  // namespace phimap
