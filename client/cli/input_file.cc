#include "client/cli/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::unique_ptr<InputFile> file(
      new InputFile(fd, !standard_input, standard_input ? "standard input" : path));
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is a folder"));
  }
  file->regular_ = S_ISREG(info.st_mode);
  if (file->regular_) file->start_ = lseek(fd, 0, SEEK_CUR);
  return file;
}

InputFile::InputFile(int fd, bool owned, std::string name)
    : fd_(fd), owned_(owned), name_(std::move(name)) {
  int ends[2];
  PHIMAP_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  wake_read_ = ends[0];
  wake_write_ = ends[1];
}

InputFile::~InputFile() {
  close(wake_read_);
  close(wake_write_);
  if (owned_) close(fd_);
}

void InputFile::Interrupt() {
  // A full pipe is as readable as one byte, so a failure does not matter.
  [[maybe_unused]] const ssize_t written = write(wake_write_, "x", 1);
}

absl::Status InputFile::WaitForBytes() {
  struct pollfd waits[2] = {{.fd = wake_read_, .events = POLLIN, .revents = 0},
                            {.fd = fd_, .events = POLLIN, .revents = 0}};
  while (poll(waits, 2, /*timeout_ms=*/-1) < 0) {
    if (errno != EINTR) return absl::InternalError(absl::StrCat("poll: ", std::strerror(errno)));
  }
  if (waits[0].revents != 0) return absl::CancelledError("reading was interrupted");
  return absl::OkStatus();
}

absl::StatusOr<size_t> InputFile::Read(char* buffer, size_t capacity) {
  PHIMAP_RETURN_IF_ERROR(WaitForBytes());
  ssize_t size;
  do {
    size = read(fd_, buffer, capacity);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    return absl::InternalError(absl::StrCat("reading ", name_, ": ", std::strerror(errno)));
  }
  return static_cast<size_t>(size);
}

absl::Status InputFile::Rewind() {
  if (!regular_) {
    return absl::UnimplementedError(absl::StrCat(name_, " can be read only once"));
  }
  char drained[64];
  while (read(wake_read_, drained, sizeof(drained)) > 0) {
  }
  if (lseek(fd_, start_, SEEK_SET) < 0) {
    return absl::InternalError(absl::StrCat("rewinding ", name_, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
