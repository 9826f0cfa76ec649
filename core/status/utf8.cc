#include "core/status/utf8.h"

namespace phimap {

uint32_t TakeUtf8Character(absl::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  size_t size = 0;
  uint32_t code = byte(0);
  if (code < 0x80) {
    size = 1;
  } else if (code >= 0xc2 && code < 0xe0) {
    size = 2;
    code &= 0x1f;
  } else if (code >= 0xe0 && code < 0xf0) {
    size = 3;
    code &= 0x0f;
  } else if (code >= 0xf0 && code < 0xf5) {
    size = 4;
    code &= 0x07;
  } else {
    return kNoCharacter;
  }
  if (text.size() < size) return kNoCharacter;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kNoCharacter;
    code = code << 6 | (byte(i) & 0x3f);
  }
  text.remove_prefix(size);
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? kNoCharacter : code;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    if (TakeUtf8Character(text) == kNoCharacter) return false;
  }
  return true;
}

}  // namespace phimap
