// Decides which bytes may be shown to users as text, because texts from artifacts of unknown origin
// go into messages, logs and terminals.
#ifndef PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_
#define PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_

#include "absl/strings/string_view.h"

namespace phimap {

// Returns whether `text` is UTF-8 (shortest forms, no surrogates, up to U+10FFFF) without control
// characters other than line feeds. C0 and C1 characters are rejected because they could move a
// terminal's cursor. Characters that change the direction of writing are rejected because the text
// would not be displayed as stored. Pure; linear time.
bool IsReadableText(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_
