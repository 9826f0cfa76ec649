// A text as a string of JSON.
#ifndef PHIMAP_SERVER_OBSERVE_JSON_TEXT_H_
#define PHIMAP_SERVER_OBSERVE_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

// Appends `text` in quotes. A byte that is not UTF-8 becomes a replacement character.
void AppendJsonText(absl::string_view text, std::string& out);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_JSON_TEXT_H_
