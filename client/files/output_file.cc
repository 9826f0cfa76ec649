#include "client/files/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

absl::Status CannotWrite(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

// Whether `path` leads to a regular file; for "-", whether the descriptor `standard` does. `info`
// then identifies the file.
bool IsRegularFile(const std::string& path, int standard, struct stat& info) {
  const int result = path == "-" ? fstat(standard, &info) : stat(path.c_str(), &info);
  return result == 0 && S_ISREG(info.st_mode);
}

// Position at which bytes written to `fd` begin, or -1 if they cannot be replaced later.
int64_t StartOf(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return -1;
  // pwrite appends to a file opened with O_APPEND, whatever the offset.
  if (fcntl(fd, F_GETFL) & O_APPEND) return -1;
  return lseek(fd, 0, SEEK_CUR);
}

absl::Status WriteAll(int fd, absl::string_view bytes, int64_t offset, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t size = offset < 0 ? write(fd, bytes.data(), bytes.size())
                                    : pwrite(fd, bytes.data(), bytes.size(), offset);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return MakeError(absl::StatusCode::kInternal, errno == EPIPE ? kReaderIsGone : "", "",
                       absl::StrCat("writing ", name, ": ", std::strerror(errno)));
    }
    bytes.remove_prefix(size);
    if (offset >= 0) offset += size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  if (path == "-") {
    std::unique_ptr<OutputFile> file(new OutputFile(STDOUT_FILENO, "standard output"));
    file->start_ = StartOf(STDOUT_FILENO);
    return file;
  }
  std::unique_ptr<OutputFile> file(new OutputFile(-1, path));
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    file->fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file->fd_ < 0) return CannotWrite(path);
    file->owned_ = true;
    return file;
  }
  PHIMAP_RETURN_IF_ERROR(file->OpenTemporary(path));
  return file;
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::OpenPartial(const std::string& partial,
                                                                    const std::string& path,
                                                                    bool keep) {
  std::unique_ptr<OutputFile> file(new OutputFile(-1, partial));
  file->fd_ = open(partial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file->fd_ < 0) return CannotWrite(partial);
  file->owned_ = true;
  if (flock(file->fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another process is writing ", partial, "; wait for it, or stop it"));
  }
  file->target_ = path;
  file->temporary_ = partial;
  file->kept_ = keep;
  file->start_ = 0;
  return file;
}

absl::Status OutputFile::CutOff(int64_t size) {
  PHIMAP_CHECK(!temporary_.empty());
  if (ftruncate(fd_, size) != 0) return Failed("cutting off");
  return lseek(fd_, size, SEEK_SET) == size ? absl::OkStatus() : Failed("seeking in");
}

absl::Status OutputFile::OpenTemporary(const std::string& path) {
  for (const absl::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!absl::StartsWith(path, folder)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": descriptor ", path.substr(folder.size()),
                     " is not open; a shell opens it with ", path.substr(folder.size()), ">FILE"));
  }
  // Keeps a symbolic link and replaces its target.
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  target_ = error ? path : real.string();
  temporary_ = absl::StrCat(target_, ".XXXXXX");
  fd_ = mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
    return CannotWrite(path);
  }
  owned_ = true;
  start_ = 0;
  // mkstemp creates private files. Gives this file the permissions that any new file would get.
  const mode_t mask = umask(0);
  umask(mask);
  return fchmod(fd_, 0666 & ~mask) == 0 ? absl::OkStatus() : CannotWrite(path);
}

OutputFile::~OutputFile() {
  if (owned_ && fd_ >= 0) close(fd_);
  if (!temporary_.empty() && !kept_) unlink(temporary_.c_str());
}

absl::Status OutputFile::Append(absl::string_view bytes) {
  return WriteAll(fd_, bytes, /*offset=*/-1, name_);
}

absl::Status OutputFile::WriteAtStart(absl::string_view bytes) {
  PHIMAP_CHECK(seekable());
  return WriteAll(fd_, bytes, start_, name_);
}

absl::Status OutputFile::Commit() {
  if (!owned_) return absl::OkStatus();
  // Some file systems report a full disk only here.
  const bool closed = close(std::exchange(fd_, -1)) == 0;
  if (!closed) return Failed("closing");
  if (temporary_.empty()) return absl::OkStatus();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return Failed("renaming");
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Failed(absl::string_view what) const {
  return absl::InternalError(absl::StrCat(what, " ", name_, ": ", std::strerror(errno)));
}

absl::Status RefuseOverwritingInput(const std::string& input, const std::string& output) {
  struct stat from;
  struct stat to;
  // Checks regular files only: a terminal or /dev/null may well be both input and output.
  if (!IsRegularFile(input, STDIN_FILENO, from) || !IsRegularFile(output, STDOUT_FILENO, to) ||
      from.st_dev != to.st_dev || from.st_ino != to.st_ino) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--output=", output, " is the same file as --input=", input,
                   ": the output would replace the rows; name another file"));
}

}  // namespace phimap::cli
