// Texts as sequences of characters.
#ifndef PHIMAP_CORE_STATUS_UTF8_H_
#define PHIMAP_CORE_STATUS_UTF8_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace phimap {

// Over every code point.
inline constexpr uint32_t kNoCharacter = 0xffffffff;

// Takes one character off the front and returns its code point; kNoCharacter for an invalid one:
// longer than it must be, half of a pair for UTF-16, over U+10FFFF, or cut. REQUIRES:
// !text.empty().
uint32_t TakeUtf8Character(absl::string_view& text);

// Whether a text is characters throughout (RFC 3629). Pure; linear.
bool IsUtf8(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_UTF8_H_
