#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/files/file_system.h"

namespace phimap {
namespace {

// The owner may write and the group may read, which is all that a backup user needs.
constexpr mode_t kDirectoryMode = 0750;
constexpr mode_t kPrivateDirectoryMode = 0700;
constexpr mode_t kFileMode = 0640;

// Meaning of an errno for the server's operator.
struct Meaning {
  absl::StatusCode code;
  const char* reason;
  const char* advice;
};

Meaning MeaningOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return {absl::StatusCode::kNotFound, reason::kFileNotFound, "check the path"};
    case EEXIST:
      return {absl::StatusCode::kAlreadyExists, reason::kFileExists,
              "remove it or choose another path"};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {absl::StatusCode::kResourceExhausted, reason::kDiskFull,
              "free space or raise the quota, then try again"};
    case EMFILE:
    case ENFILE:
      return {absl::StatusCode::kResourceExhausted, reason::kOpenFileLimitReached,
              "raise the limit of open files"};
    case ENOMEM:
      return {absl::StatusCode::kResourceExhausted, reason::kMachineMemoryFull,
              "give the process more memory"};
    case EROFS:
      return {absl::StatusCode::kFailedPrecondition, reason::kFileSystemReadOnly,
              "mount it writable or choose another data directory"};
    case EACCES:
    case EPERM:
      return {absl::StatusCode::kFailedPrecondition, reason::kFilePermissionDenied,
              "give the user of this process read and write permission"};
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return {absl::StatusCode::kFailedPrecondition, reason::kPathInvalid, "check the path"};
    default:
      return {absl::StatusCode::kUnavailable, reason::kFileIoFailed,
              "look for disk errors in the kernel log"};
  }
}

// Repeats `call` while signals interrupt it.
template <typename Call>
auto Uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::StatusOr<Descriptor> OpenFile(const std::string& path, int flags) {
  const int fd = Uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  if (fd < 0) return FileError(errno, "open", path);
  return Descriptor(fd);
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written =
          Uninterrupted([&] { return ::write(file_.get(), bytes.data(), bytes.size()); });
      if (written < 0) return FileError(errno, "write", path_);
      // A short write is not an error: its cause shows at the next write.
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (Uninterrupted([&] { return ::fsync(file_.get()); }) != 0) {
      return FileError(errno, "fsync", path_);
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    PHIMAP_CHECK(file_.get() >= 0);
    // Linux releases the descriptor even when close fails or is interrupted: never call it twice.
    if (::close(file_.Release()) != 0 && errno != EINTR) return FileError(errno, "close", path_);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  Descriptor file_;
};

// Fills `bytes` from the file, and truncates `bytes` if the file ends before.
absl::Status FillFrom(int fd, const std::string& path, std::string& bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count =
        Uninterrupted([&] { return ::read(fd, bytes.data() + filled, bytes.size() - filled); });
    if (count < 0) return FileError(errno, "read", path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return absl::OkStatus();
}

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(std::string path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::StatusOr<std::string> Read(int64_t limit_bytes) override {
    std::string bytes(static_cast<size_t>(limit_bytes), '\0');
    PHIMAP_RETURN_IF_ERROR(FillFrom(file_.get(), path_, bytes));
    return bytes;
  }

 private:
  const std::string path_;
  const Descriptor file_;
};

// A lock taken by flock belongs to the open file, not to the process. So a second store in the same
// process is rejected too, and (unlike fcntl locks) closing another descriptor of the file does not
// release the lock.
class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(Descriptor file) : file_(std::move(file)) {}

 private:
  Descriptor file_;
};

// Writes the pid, which is only for people. Ignores failures, because a full disk must not keep a
// server from starting.
void WritePid(int fd) {
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, pid.data(), pid.size(), 0);
}

absl::Status LockedError(int fd, const std::string& path) {
  char buffer[32];
  const ssize_t size = ::pread(fd, buffer, sizeof(buffer), 0);
  const absl::string_view pid = absl::StripAsciiWhitespace(
      absl::string_view(buffer, static_cast<size_t>(std::max<ssize_t>(size, 0))));
  const std::string holder = pid.empty() ? "another process" : absl::StrCat("process ", pid);
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kDirectoryLocked, "",
                   absl::StrCat(path, " is locked by ", holder,
                                "; stop it, or give this server another data directory"),
                   {{"path", path}, {"pid", std::string(pid)}});
}

class PosixFileSystemImpl : public FileSystem {
 public:
  absl::Status CreateDir(const std::string& path) override {
    if (::mkdir(path.c_str(), kDirectoryMode) == 0) return absl::OkStatus();
    const int error_number = errno;
    struct stat info;
    // Also checked on EROFS: an existing directory on a read-only file system is not an error.
    if (::stat(path.c_str(), &info) == 0) {
      return S_ISDIR(info.st_mode) ? absl::OkStatus() : FileError(ENOTDIR, "mkdir", path);
    }
    return FileError(error_number, "mkdir", path);
  }

  absl::Status CreatePrivateDir(const std::string& path) override {
    PHIMAP_RETURN_IF_ERROR(CreateDir(path));
    // Sets the mode explicitly, because it must not depend on the umask or on who created the
    // directory.
    if (::chmod(path.c_str(), kPrivateDirectoryMode) != 0) return FileError(errno, "chmod", path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor file, OpenFile(path, O_WRONLY | O_CREAT | O_EXCL));
    return std::make_unique<PosixWritableFile>(path, std::move(file));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return FileError(errno, "rename", to);
    return absl::OkStatus();
  }

  absl::Status SyncDir(const std::string& path) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor directory, OpenFile(path, O_RDONLY | O_DIRECTORY));
    if (Uninterrupted([&] { return ::fsync(directory.get()); }) != 0) {
      return FileError(errno, "fsync", path);
    }
    return absl::OkStatus();
  }
  absl::Status SyncFileSystem(const std::string& path) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor directory, OpenFile(path, O_RDONLY | O_DIRECTORY));
    if (Uninterrupted([&] { return ::syncfs(directory.get()); }) != 0) {
      return FileError(errno, "syncfs", path);
    }
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return FileError(errno, "remove", path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
    if (directory == nullptr) return FileError(errno, "list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory.get())) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return FileError(errno, "list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<int64_t> SizeBytes(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return FileError(errno, "stat", path);
    return static_cast<int64_t>(info.st_size);
  }

  absl::StatusOr<FileFacts> Facts(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return FileError(errno, "stat", path);
    return FileFacts{.size_bytes = static_cast<int64_t>(info.st_size),
                     .write_time = absl::TimeFromTimespec(info.st_mtim),
                     .change_time = absl::TimeFromTimespec(info.st_ctim)};
  }

  absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor file, OpenFile(path, O_RDONLY));
    struct stat info;
    if (::fstat(file.get(), &info) != 0) return FileError(errno, "stat", path);
    if (info.st_size > limit_bytes) {
      return MakeError(absl::StatusCode::kOutOfRange, reason::kFileTooLarge, "",
                       absl::StrCat(path, " has ", info.st_size, " bytes, more than the ",
                                    limit_bytes, " expected"),
                       {{"path", path}});
    }
    std::string bytes(static_cast<size_t>(info.st_size), '\0');
    // If the file was truncated after fstat, the result is shorter; the digest will show that.
    PHIMAP_RETURN_IF_ERROR(FillFrom(file.get(), path, bytes));
    return bytes;
  }

  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset,
                                        int64_t bytes) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor file, OpenFile(path, O_RDONLY));
    if (::lseek(file.get(), offset, SEEK_SET) < 0) return FileError(errno, "seek in", path);
    std::string part(static_cast<size_t>(bytes), '\0');
    PHIMAP_RETURN_IF_ERROR(FillFrom(file.get(), path, part));
    return part;
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> NewReadableFile(const std::string& path) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor file, OpenFile(path, O_RDONLY));
    return std::make_unique<PosixReadableFile>(path, std::move(file));
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    PHIMAP_ASSIGN_OR_RETURN(Descriptor file, OpenFile(path, O_RDWR | O_CREAT));
    if (Uninterrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return LockedError(file.get(), path);
      return FileError(errno, "lock", path);
    }
    WritePid(file.get());
    return std::make_unique<PosixFileLock>(std::move(file));
  }
};

}  // namespace

absl::Status FileError(int error_number, absl::string_view operation, absl::string_view path) {
  PHIMAP_CHECK(error_number != 0);
  const Meaning meaning = MeaningOf(error_number);
  return MakeError(
      meaning.code, meaning.reason, "",
      absl::StrCat("cannot ", operation, " ", path, ": ",
                   std::generic_category().message(error_number), "; ", meaning.advice),
      {{"path", std::string(path)}, {"operation", std::string(operation)}});
}

FileSystem* PosixFileSystem() {
  static PosixFileSystemImpl* const file_system = new PosixFileSystemImpl;
  return file_system;
}

}  // namespace phimap
