// Decides which bytes may be shown to people as text, since the texts of an artifact of unknown
// origin appear in messages, logs and terminals.
#ifndef PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_
#define PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_

#include "absl/strings/string_view.h"

namespace phimap {

// Whether `text` is UTF-8 (shortest forms, no surrogates, up to U+10FFFF) without control
// characters other than line feeds: no C0 or C1, so that it cannot move a terminal's cursor, and no
// character that changes the direction of writing, so that it reads as it is stored. Pure; linear.
bool IsReadableText(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_
