// Reads UTF-8 text character by character.
#ifndef PHIMAP_CORE_STATUS_UTF8_H_
#define PHIMAP_CORE_STATUS_UTF8_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace phimap {

// Stands for "not a character"; larger than every code point.
inline constexpr uint32_t kNoCharacter = 0xffffffff;

// Removes the first character from `text` and returns its code point. Returns kNoCharacter, and may
// leave `text` unchanged, if the character is invalid for one of these reasons: a wrong byte, an
// encoding that is longer than necessary, a surrogate of UTF-16, a code point over U+10FFFF, or a
// character that is cut off. REQUIRES: !text.empty().
uint32_t TakeUtf8Character(absl::string_view& text);

// Whether `text` is valid UTF-8 (RFC 3629). Pure; linear time.
bool IsUtf8(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_UTF8_H_
