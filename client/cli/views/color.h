// Colours for single words of what is printed.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_COLOR_H_
#define PHIMAP_CLIENT_CLI_VIEWS_COLOR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap::cli {

enum class ColorChoice { kAuto, kAlways, kNever };

// "auto", "always" or "never".
ColorChoice ParseColorChoice(absl::string_view text);

// Whether output to this descriptor is coloured. kAuto means: if it is a terminal other than
// TERM=dumb, and NO_COLOR (no-color.org) is unset or empty.
bool UsesColor(ColorChoice choice, int descriptor);

// Whether a line can be redrawn in place on this descriptor.
bool IsCapableTerminal(int descriptor);

enum class Color { kRed, kYellow, kGreen };

// The text, in this colour if `on`.
std::string Colored(absl::string_view text, Color color, bool on);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_COLOR_H_
