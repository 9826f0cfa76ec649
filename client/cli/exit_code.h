// Exit codes of the command `phimap`: part of its interface, listed in its --help.
#ifndef PHIMAP_CLIENT_CLI_EXIT_CODE_H_
#define PHIMAP_CLIENT_CLI_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"

namespace phimap::cli {

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

// The list of codes for --help.
std::string ExitCodeHelp();

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_EXIT_CODE_H_
