#include "core/plan/byte_codec.h"

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap {

void ByteWriter::Text(absl::string_view text) {
  Number<uint32_t>(static_cast<uint32_t>(text.size()));
  out_.append(text.data(), text.size());
}

void ByteWriter::AlignTo(int64_t alignment) {
  while (static_cast<int64_t>(out_.size()) % alignment != 0) out_.push_back('\0');
}

bool ByteReader::Want(int64_t bytes, absl::string_view what) {
  if (!status_.ok()) return false;
  if (bytes <= left()) return true;
  Fail(absl::StrCat("expected ", what, " of ", bytes, " bytes, but only ", left(), " are left"));
  return false;
}

const char* ByteReader::Bytes(int64_t count, int64_t size) {
  if (!status_.ok()) return nullptr;
  if (count < 0 || count > left() / size) {
    Fail(absl::StrCat("expected ", CountOf(count, "number"), " of ", size, " bytes, but only ",
                      left(), " bytes are left"));
    return nullptr;
  }
  const char* begin = bytes_.data() + position_;
  position_ += static_cast<size_t>(count * size);
  return begin;
}

std::string ByteReader::Text(int64_t limit) {
  const int64_t length = Number<uint32_t>();
  CheckRange("length of a text", length, 0, limit);
  if (!Want(length, "a text")) return "";
  std::string text(bytes_.substr(position_, static_cast<size_t>(length)));
  position_ += static_cast<size_t>(length);
  return text;
}

void ByteReader::AlignTo(int64_t alignment) {
  while (status_.ok() && (base_ + static_cast<int64_t>(position_)) % alignment != 0) {
    if (Number<uint8_t>() != 0) Fail("padding is not zero");
  }
}

void ByteReader::Fail(absl::string_view what) {
  if (status_.ok()) status_ = DamagedArtifact(base_ + static_cast<int64_t>(position_), what);
}

void ByteReader::CheckRange(absl::string_view what, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) {
    Fail(absl::StrCat(what, ": expected ", low, " to ", high, ", got ", value));
  }
}

absl::Status ByteReader::Finish() {
  if (left() != 0) Fail(absl::StrCat(left(), " bytes are left over"));
  return status_;
}

absl::Status DamagedArtifact(int64_t offset, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactMalformed, "",
                   absl::StrCat("artifact damaged at byte ", offset, ": ", what),
                   {{"offset", absl::StrCat(offset)}});
}

}  // namespace phimap
