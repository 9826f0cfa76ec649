#include "client/files/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr size_t kStoredBufferSizeBytes = 256 << 10;

}  // namespace

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
  if (file->regular_) {
    file->start_ = lseek(fd, 0, SEEK_CUR);
    file->size_bytes_ = info.st_size - file->start_;
  }
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
  // A failed write is harmless: a full pipe wakes the reader as well.
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
  if (!looked_) PHIMAP_RETURN_IF_ERROR(Look());
  if (decompressor_ != nullptr) return ReadDecompressed(buffer, capacity);
  if (taken_ == stored_.size()) return ReadStored(buffer, capacity);
  const size_t size = stored_.copy(buffer, capacity, taken_);
  taken_ += size;
  return size;
}

absl::Status InputFile::Look() {
  char first[kMagicSizeBytes];
  do {
    PHIMAP_ASSIGN_OR_RETURN(const size_t size, ReadStored(first, sizeof(first) - stored_.size()));
    if (size == 0) break;
    stored_.append(first, size);
  } while (stored_.size() < sizeof(first) && MayBeCompressed(stored_));
  decompressor_ = DecompressorFor(stored_);
  looked_ = true;
  return absl::OkStatus();
}

absl::StatusOr<size_t> InputFile::ReadDecompressed(char* buffer, size_t capacity) {
  while (true) {
    if (taken_ == stored_.size() && !more_without_input_) {
      stored_.resize(kStoredBufferSizeBytes);
      taken_ = 0;
      const absl::StatusOr<size_t> size = ReadStored(stored_.data(), stored_.size());
      stored_.resize(size.ok() ? *size : 0);
      PHIMAP_RETURN_IF_ERROR(size.status());
      if (*size == 0 && decompressor_->AtEnd()) return 0;
      if (*size == 0) return Damaged("it is cut off");
    }
    const absl::StatusOr<Decompressor::Step> step =
        decompressor_->Decode(absl::string_view(stored_).substr(taken_), buffer, capacity);
    if (!step.ok()) return Damaged(step.status().message());
    taken_ += step->taken;
    more_without_input_ = step->given == capacity;
    if (step->given > 0) return step->given;
  }
}

absl::Status InputFile::Damaged(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": expected a complete ", decompressor_->name(), " file: ", what));
}

absl::StatusOr<size_t> InputFile::ReadAt(int64_t offset, char* buffer, size_t size) {
  PHIMAP_CHECK(CanSeek());
  PHIMAP_RETURN_IF_ERROR(WaitForBytes());
  size_t done = 0;
  while (done < size) {
    const ssize_t more = pread(fd_, buffer + done, size - done, start_ + offset + done);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) {
      return absl::InternalError(absl::StrCat("reading ", name_, ": ", std::strerror(errno)));
    }
    if (more == 0) break;
    done += more;
  }
  return done;
}

std::optional<double> InputFile::share_read() const {
  if (!regular_ || size_bytes_ <= 0) return std::nullopt;
  const double share = static_cast<double>(stored_bytes_read_.load(std::memory_order_relaxed)) /
                       static_cast<double>(size_bytes_);
  return std::min(share, 1.0);  // The file may have grown since it was opened.
}

absl::StatusOr<size_t> InputFile::ReadStored(char* buffer, size_t capacity) {
  PHIMAP_RETURN_IF_ERROR(WaitForBytes());
  ssize_t size;
  do {
    size = read(fd_, buffer, capacity);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    return absl::InternalError(absl::StrCat("reading ", name_, ": ", std::strerror(errno)));
  }
  stored_bytes_read_.fetch_add(size, std::memory_order_relaxed);
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
  stored_bytes_read_ = 0;
  looked_ = false;
  decompressor_ = nullptr;
  stored_.clear();
  taken_ = 0;
  more_without_input_ = false;
  return absl::OkStatus();
}

}  // namespace phimap::cli
