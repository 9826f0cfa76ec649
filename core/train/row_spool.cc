#include "core/train/row_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

// A row is its label and weight (float64), the size of its content (u32), and that content, in this
// machine's order.
namespace phimap {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

struct RowHead {
  double label;
  double weight;
  uint32_t content_bytes;
};
constexpr size_t kHeadBytes = 20;

void Append(const PartRow& row, std::string& to) {
  const RowHead head{row.label, row.weight, static_cast<uint32_t>(row.content.size())};
  char bytes[kHeadBytes];
  std::memcpy(bytes, &head.label, 8);
  std::memcpy(bytes + 8, &head.weight, 8);
  std::memcpy(bytes + 16, &head.content_bytes, 4);
  to.append(bytes, kHeadBytes).append(row.content);
}

absl::Status DiskError(const std::string& folder, absl::string_view what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return MakeError(full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
                   full ? reason::kDiskFull : reason::kFileIoFailed, "",
                   absl::StrCat("cannot ", what, " the rows of a training in ", folder, ": ",
                                std::strerror(error),
                                full ? "; free space, or train on a version that is built already"
                                     : "; look for disk errors in the kernel log"));
}

}  // namespace

RowSpool::~RowSpool() {
  if (file_ >= 0) close(file_);
  space_.used_bytes_.fetch_sub(written_);
}

absl::Status RowSpool::Open() {
  file_ = open(space_.folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ >= 0) return absl::OkStatus();
  // File systems without O_TMPFILE: a name for a moment.
  std::string name = absl::StrCat(space_.folder(), "/.training-XXXXXX");
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) return DiskError(space_.folder(), "write", errno);
  unlink(name.c_str());
  return absl::OkStatus();
}

absl::Status RowSpool::Flush() {
  const auto bytes = static_cast<int64_t>(buffer_.size());
  if (space_.used_bytes_.fetch_add(bytes) + bytes > space_.limit_bytes()) {
    space_.used_bytes_.fetch_sub(bytes);
    return MakeError(
        absl::StatusCode::kResourceExhausted, reason::kTrainingDiskFull, "",
        absl::StrCat("the rows of trainings that build their features take more than the limit of ",
                     space_.limit_bytes(), " bytes on disk; ", written_,
                     " are this training's; raise --training_disk_bytes, or build a version first "
                     "and train on it, which keeps no rows"),
        {{"limit", absl::StrCat(space_.limit_bytes())}});
  }
  if (file_ < 0) {
    const absl::Status opened = Open();
    if (!opened.ok()) {
      space_.used_bytes_.fetch_sub(bytes);
      return opened;
    }
  }
  written_ += bytes;  // the destructor gives them back, whether or not they reached the disk
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t count = pwrite(file_, buffer_.data() + done, buffer_.size() - done,
                                 written_ - bytes + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return DiskError(space_.folder(), "write", count < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(count);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status RowSpool::Add(const PartRow& row) {
  Append(row, buffer_);
  ++rows_;
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status RowSpool::Read(int64_t rows_at_a_time,
                            absl::FunctionRef<absl::Status(const std::vector<PartRow>&)> take) {
  std::vector<PartRow> rows;
  std::string bytes;
  size_t next = 0;
  int64_t at = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    // Returns whether `count` bytes follow `next`, after reading on if need be.
    const auto ensure = [&](size_t count) -> absl::Status {
      while (bytes.size() - next < count) {
        bytes.erase(0, next);
        next = 0;
        if (at == written_) {
          bytes.append(buffer_);
          at += static_cast<int64_t>(buffer_.size());
          break;
        }
        const size_t before = bytes.size();
        const auto most = static_cast<size_t>(std::min<int64_t>(kBufferBytes, written_ - at));
        bytes.resize(before + most);
        ssize_t got;
        do {
          got = pread(file_, bytes.data() + before, most, at);
        } while (got < 0 && errno == EINTR);
        if (got <= 0) return DiskError(space_.folder(), "read", got < 0 ? errno : EIO);
        bytes.resize(before + static_cast<size_t>(got));
        at += got;
      }
      return absl::OkStatus();
    };
    PHIMAP_RETURN_IF_ERROR(ensure(kHeadBytes));
    PHIMAP_CHECK(bytes.size() - next >= kHeadBytes);
    RowHead head;
    std::memcpy(&head.label, bytes.data() + next, 8);
    std::memcpy(&head.weight, bytes.data() + next + 8, 8);
    std::memcpy(&head.content_bytes, bytes.data() + next + 16, 4);
    PHIMAP_RETURN_IF_ERROR(ensure(kHeadBytes + head.content_bytes));
    PHIMAP_CHECK(bytes.size() - next >= kHeadBytes + head.content_bytes);
    rows.push_back({bytes.substr(next + kHeadBytes, head.content_bytes), head.label, head.weight});
    next += kHeadBytes + head.content_bytes;
    if (std::ssize(rows) == rows_at_a_time || row + 1 == rows_) {
      PHIMAP_RETURN_IF_ERROR(take(rows));
      rows.clear();
    }
  }
  return absl::OkStatus();
}

}  // namespace phimap
