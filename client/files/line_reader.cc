#include "client/files/line_reader.h"

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr size_t kLineBufferBytes = 256 << 10;
constexpr size_t kMaxLineSizeBytes = 16 << 20;
constexpr char kLineByteOrderMark[] = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(InputFile& file) : file_(file), buffer_(kLineBufferBytes) {}

absl::StatusOr<bool> LineReader::Next(std::string& line) {
  line.clear();
  ++number_;
  bool any = false;
  while (true) {
    if (position_ == size_) {
      PHIMAP_ASSIGN_OR_RETURN(size_, file_.Read(buffer_.data(), buffer_.size()));
      position_ = 0;
      if (size_ == 0) break;
    }
    any = true;
    const char* const begin = buffer_.data() + position_;
    const void* const end = std::memchr(begin, '\n', size_ - position_);
    const size_t count = end == nullptr ? size_ - position_ : static_cast<const char*>(end) - begin;
    line.append(begin, count);
    position_ += count + (end == nullptr ? 0 : 1);
    if (line.size() > kMaxLineSizeBytes) return Error("a line is longer than 16 MiB");
    if (end != nullptr) break;
  }
  if (!any) return false;
  if (absl::EndsWith(line, "\r")) line.pop_back();
  if (number_ == 1 && absl::StartsWith(line, kLineByteOrderMark)) line.erase(0, 3);
  return true;
}

absl::Status LineReader::Rewind() {
  PHIMAP_RETURN_IF_ERROR(file_.Rewind());
  position_ = size_ = 0;
  number_ = 0;
  return absl::OkStatus();
}

absl::Status LineReader::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(file_.name(), ", line ", number_, ": ", message));
}

}  // namespace phimap::cli
