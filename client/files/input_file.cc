#include "client/files/input_file.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

// Decodes a stream piece by piece, in bounded memory. Concatenated streams (gzip's members, zstd's
// frames) count as one. Not thread-safe.
class Decompressor {
 public:
  struct Step {
    size_t taken = 0;
    size_t given = 0;
  };

  virtual ~Decompressor() = default;
  // "gzip" or "zstd".
  virtual absl::string_view name() const = 0;
  // Consumes bytes of `in` and writes at most `capacity` bytes to `out`. After a step that fills
  // `out`, there may be more output without more input. Bytes of another format are
  // kInvalidArgument.
  virtual absl::StatusOr<Step> Decode(absl::string_view in, char* out, size_t capacity) = 0;
  // Whether the stream may end after the input taken so far.
  virtual bool AtEnd() const = 0;
};

namespace {

// Number of leading bytes that identify a compressed format or show that the data are not
// compressed.
constexpr size_t kMagicSizeBytes = 4;

constexpr absl::string_view kGzipMagic("\x1f\x8b", 2);
constexpr absl::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);

class GzipDecompressor : public Decompressor {
 public:
  GzipDecompressor() {
    // 16 selects the header of gzip; 15 is the largest window of the format, 32 KiB.
    PHIMAP_CHECK(inflateInit2(&stream_, 16 + 15) == Z_OK);
  }
  ~GzipDecompressor() override { inflateEnd(&stream_); }

  absl::string_view name() const override { return "gzip"; }
  bool AtEnd() const override { return at_end_; }

  absl::StatusOr<Step> Decode(absl::string_view in, char* out, size_t capacity) override {
    if (at_end_) {
      if (in.empty()) return Step{};
      PHIMAP_CHECK(inflateReset(&stream_) == Z_OK);  // Starts the next member of a gzip file.
      at_end_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(capacity);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    // Z_BUF_ERROR: more input is needed, which is not an error.
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(stream_.msg == nullptr ? "damaged" : stream_.msg);
    }
    at_end_ = result == Z_STREAM_END;
    return Step{in.size() - stream_.avail_in, capacity - stream_.avail_out};
  }

 private:
  z_stream stream_ = {};
  bool at_end_ = false;
};

class ZstdDecompressor : public Decompressor {
 public:
  ZstdDecompressor() : context_(ZSTD_createDCtx()) { PHIMAP_CHECK(context_ != nullptr); }
  ~ZstdDecompressor() override { ZSTD_freeDCtx(context_); }

  absl::string_view name() const override { return "zstd"; }
  bool AtEnd() const override { return at_end_; }

  absl::StatusOr<Step> Decode(absl::string_view in, char* out, size_t capacity) override {
    // Without input the library would begin a new frame.
    if (at_end_ && in.empty()) return Step{};
    ZSTD_inBuffer input = {in.data(), in.size(), 0};
    ZSTD_outBuffer output = {out, capacity, 0};
    const size_t result = ZSTD_decompressStream(context_, &output, &input);
    if (ZSTD_isError(result)) return absl::InvalidArgumentError(ZSTD_getErrorName(result));
    at_end_ = result == 0;
    return Step{input.pos, output.pos};
  }

 private:
  ZSTD_DCtx* const context_;
  bool at_end_ = false;
};

// Returns a decompressor for a stream that begins with `first_bytes`; null if the stream is neither
// gzip nor zstd.
std::unique_ptr<Decompressor> DecompressorFor(absl::string_view first_bytes) {
  if (absl::StartsWith(first_bytes, kGzipMagic)) return std::make_unique<GzipDecompressor>();
  if (absl::StartsWith(first_bytes, kZstdMagic)) return std::make_unique<ZstdDecompressor>();
  return nullptr;
}

// Whether more bytes may still make these the beginning of a compressed stream.
bool MayBeCompressed(absl::string_view first_bytes) {
  return absl::StartsWith(kGzipMagic, first_bytes) || absl::StartsWith(kZstdMagic, first_bytes);
}

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

namespace {

// Expands a pattern. The matches are in byte order, whatever the locale.
absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t found = {};
  const int result = glob(pattern.c_str(), GLOB_NOSORT, /*errfunc=*/nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH) {
    return absl::InvalidArgumentError(
        absl::StrCat("--input: a folder of the pattern ", pattern, " cannot be read"));
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--input: no file matches the pattern ", pattern));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesNamed(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    struct stat info;
    const bool pattern =
        word.find_first_of("*?[") != std::string::npos && stat(word.c_str(), &info) != 0;
    if (!pattern) {
      paths.push_back(word);
      continue;
    }
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<std::string> matches, Matches(word));
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    return absl::InvalidArgumentError(
        "--input: standard input (-) is given twice, but it can be read only once");
  }
  return paths;
}

absl::string_view WithoutCompression(absl::string_view path) {
  for (const absl::string_view ending : {".gz", ".zst", ".zstd"}) {
    if (absl::EndsWithIgnoreCase(path, ending)) {
      return path.substr(0, path.size() - ending.size());
    }
  }
  return path;
}

}  // namespace phimap::cli
