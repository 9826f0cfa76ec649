#include "server/rpc/metadata.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace phimap {

std::string PercentEncode(absl::string_view utf8) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size(); ++i) {
    const unsigned char byte = static_cast<unsigned char>(utf8[i]);
    const bool end_space = byte == ' ' && (i == 0 || i + 1 == utf8.size());
    if (byte >= ' ' && byte <= '~' && byte != '%' && !end_space) {
      encoded.push_back(utf8[i]);
      continue;
    }
    encoded.push_back('%');
    encoded.push_back(kDigits[byte >> 4]);
    encoded.push_back(kDigits[byte & 0xf]);
  }
  return encoded;
}

std::string EncodeBinaryMetadata(absl::string_view bytes) {
  std::string encoded = absl::Base64Escape(bytes);
  encoded.erase(std::min(encoded.size(), encoded.find('=')));
  return encoded;
}

namespace {

constexpr size_t kMaxDigits = 8;

std::optional<absl::Duration> UnitOf(char letter) {
  switch (letter) {
    case 'H':
      return absl::Hours(1);
    case 'M':
      return absl::Minutes(1);
    case 'S':
      return absl::Seconds(1);
    case 'm':
      return absl::Milliseconds(1);
    case 'u':
      return absl::Microseconds(1);
    case 'n':
      return absl::Nanoseconds(1);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<absl::Duration> ParseGrpcTimeout(absl::string_view value) {
  if (value.size() < 2 || value.size() > kMaxDigits + 1) return std::nullopt;
  const std::optional<absl::Duration> unit = UnitOf(value.back());
  if (!unit.has_value()) return std::nullopt;
  value.remove_suffix(1);
  int64_t count = 0;
  for (char digit : value) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) return std::nullopt;
    count = count * 10 + (digit - '0');
  }
  return count * *unit;
}

}  // namespace phimap
