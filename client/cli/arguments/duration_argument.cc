#include "client/cli/arguments/duration_argument.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace phimap::cli {
namespace {

struct TimeUnit {
  char letter;
  absl::Duration length;
};

// Units for printing, the largest first. Weeks can be parsed but are never printed, because people
// count days.
constexpr TimeUnit kTimeUnits[] = {{'d', absl::Hours(24)},
                                   {'h', absl::Hours(1)},
                                   {'m', absl::Minutes(1)},
                                   {'s', absl::Seconds(1)}};
constexpr TimeUnit kWeek{'w', absl::Hours(7 * 24)};
// Largest number of seconds that is accepted: above every limit of the server, and within the range
// of absl::Duration.
constexpr double kMostSeconds = 1e12;

absl::Duration UnitOf(char letter) {
  if (letter == kWeek.letter) return kWeek.length;
  const auto* const unit =
      std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                   [letter](const TimeUnit& known) { return known.letter == letter; });
  return unit == std::end(kTimeUnits) ? absl::ZeroDuration() : unit->length;
}

bool IsNumberByte(char c) { return absl::ascii_isdigit(c) || c == '.'; }

}  // namespace

absl::StatusOr<absl::Duration> DurationOf(absl::string_view text, absl::string_view flag) {
  double number = 0;
  const absl::Duration unit = text.empty() ? absl::ZeroDuration() : UnitOf(text.back());
  const absl::string_view digits = text.substr(0, text.empty() ? 0 : text.size() - 1);
  // Allows only digits and a point, because SimpleAtod would also accept signs, spaces and words.
  if (unit > absl::ZeroDuration() && std::all_of(digits.begin(), digits.end(), IsNumberByte) &&
      absl::SimpleAtod(digits, &number) && number * absl::ToDoubleSeconds(unit) <= kMostSeconds) {
    return number * unit;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": expected a number and a unit s, m, h, d or w, such as 12h or 7d; got '", text, "'"));
}

std::string DurationArgumentText(absl::Duration duration) {
  for (const TimeUnit& unit : kTimeUnits) {
    if (duration >= unit.length && duration % unit.length == absl::ZeroDuration()) {
      return absl::StrCat(duration / unit.length, std::string(1, unit.letter));
    }
  }
  return absl::StrCat(absl::ToDoubleSeconds(duration), "s");
}

}  // namespace phimap::cli
