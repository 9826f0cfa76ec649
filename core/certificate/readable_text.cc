#include "core/certificate/readable_text.h"

#include <cstdint>

namespace phimap {
namespace {

constexpr uint32_t kInvalid = 0xffffffff;

// Takes one character off the front; kInvalid if the bytes are none.
uint32_t TakeCharacter(absl::string_view& text) {
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
    return kInvalid;
  }
  if (text.size() < size) return kInvalid;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kInvalid;
    code = code << 6 | (byte(i) & 0x3f);
  }
  text.remove_prefix(size);
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? kInvalid : code;
}

bool IsReadable(uint32_t code) {
  if (code == '\n') return true;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  // Marks, embeddings, overrides and isolates of the bidirectional algorithm.
  const bool direction = code == 0x61c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !direction && code <= 0x10ffff;
}

}  // namespace

bool IsReadableText(absl::string_view text) {
  while (!text.empty()) {
    if (!IsReadable(TakeCharacter(text))) return false;
  }
  return true;
}

}  // namespace phimap
