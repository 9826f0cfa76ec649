// Which bytes may be shown to people as text: what an artifact from elsewhere says goes into
// messages, logs and terminals.
#ifndef PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_
#define PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_

#include "absl/strings/string_view.h"

namespace phimap {

// Whether `text` is UTF-8 (shortest forms, no surrogates, up to U+10FFFF) without control
// characters other than line feeds: no C0 or C1, so nothing moves a terminal's cursor, and no
// character that changes the direction of writing, so what is read is what stands there. Pure;
// linear.
bool IsReadableText(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_READABLE_TEXT_H_
