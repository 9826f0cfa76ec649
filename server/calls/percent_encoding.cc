#include "server/calls/percent_encoding.h"

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

}  // namespace phimap
