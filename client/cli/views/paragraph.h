// Sentences broken into lines.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_PARAGRAPH_H_
#define PHIMAP_CLIENT_CLI_VIEWS_PARAGRAPH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap::cli {

// Appends `text`, broken between words at `width` characters (at least 40). The first line begins
// with `first`, the other lines with the same number of spaces. UTF-8. Ends with a newline.
void AppendParagraph(std::string& out, absl::string_view first, absl::string_view text, int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_PARAGRAPH_H_
