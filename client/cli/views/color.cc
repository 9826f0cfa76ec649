#include "client/cli/views/color.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace phimap::cli {

ColorChoice ParseColorChoice(absl::string_view text) {
  if (text == "always") return ColorChoice::kAlways;
  return text == "never" ? ColorChoice::kNever : ColorChoice::kAuto;
}

bool IsCapableTerminal(int descriptor) {
  const char* const terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (terminal == nullptr || absl::string_view(terminal) != "dumb");
}

bool UsesColor(ColorChoice choice, int descriptor) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  const char* const refused = std::getenv("NO_COLOR");
  return IsCapableTerminal(descriptor) && (refused == nullptr || *refused == '\0');
}

std::string Colored(absl::string_view text, Color color, bool on) {
  if (!on) return std::string(text);
  const char* const code = color == Color::kRed ? "31" : color == Color::kYellow ? "33" : "32";
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

}  // namespace phimap::cli
