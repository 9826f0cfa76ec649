// Exit codes of `phimap` and of `phimapd admin`: part of their interface, listed in their --help.
#ifndef PHIMAP_CORE_STATUS_EXIT_CODE_H_
#define PHIMAP_CORE_STATUS_EXIT_CODE_H_

#include "absl/status/status.h"

namespace phimap {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kBadInput = 2,
  kNotFound = 3,
  kUnreachable = 4,
  kRefused = 5,
  kTimedOut = 6,
  kInterrupted = 130,
};

// Returns the exit code for an error of a command or of the server.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_EXIT_CODE_H_
