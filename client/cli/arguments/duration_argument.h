// Durations as they are written on the command line: "90s", "15m", "12h", "7d", "2w".
#ifndef PHIMAP_CLIENT_CLI_ARGUMENTS_DURATION_ARGUMENT_H_
#define PHIMAP_CLIENT_CLI_ARGUMENTS_DURATION_ARGUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap::cli {

inline constexpr char kTtlHelp[] =
    "Time for which the version lives after its last use, such as 12h or 7d (default: for ever)";

// Parses a number, which may have decimals, and its unit. The error is INVALID_ARGUMENT and
// mentions `flag`.
absl::StatusOr<absl::Duration> DurationOf(absl::string_view text, absl::string_view flag);

// Formats a duration as "7d", "36h" or "90s": in the largest unit without decimals, or in seconds.
// Pure.
std::string DurationArgumentText(absl::Duration duration);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_DURATION_ARGUMENT_H_
