// Colours for single words of what is printed.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_COLOR_H_
#define PHIMAP_CLIENT_CLI_VIEWS_COLOR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap::cli {

enum class ColorChoice { kAuto, kAlways, kNever };

// "auto", "always" or "never".
ColorChoice ParseColorChoice(absl::string_view text);

// Whether output to this descriptor is coloured. kAuto: if it is a terminal that can do more than
// TERM=dumb, and NO_COLOR (no-color.org) is not set, or empty.
bool UsesColor(ColorChoice choice, int descriptor);

// Whether a line can be drawn again in place there.
bool IsCapableTerminal(int descriptor);

enum class Color { kRed, kYellow, kGreen };

// The text, in this colour if `on`.
std::string Colored(absl::string_view text, Color color, bool on);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_COLOR_H_
