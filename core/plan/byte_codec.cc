#include "core/plan/byte_codec.h"

#include <array>
#include <cstring>

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

namespace {

// tables[n][b] is the CRC of byte b followed by n zero bytes. With these tables, eight bytes are
// processed at once ("slicing by 8").
constexpr std::array<std::array<uint32_t, 256>, 8> MakeTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    tables[0][b] = crc;
  }
  for (uint32_t b = 0; b < 256; ++b) {
    for (int n = 1; n < 8; ++n) {
      tables[n][b] = (tables[n - 1][b] >> 8) ^ tables[0][tables[n - 1][b] & 0xff];
    }
  }
  return tables;
}

constexpr std::array<std::array<uint32_t, 256>, 8> kTables = MakeTables();

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  uint32_t crc = ~0u;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (int n = 0; n < 8; ++n) crc ^= kTables[7 - n][(word >> (8 * n)) & 0xff];
  }
  for (; left > 0; --left, ++p) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*p)) & 0xff];
  }
  return ~crc;
}

}  // namespace phimap
