// `phimap verify`: checks that a server answers a version's reference vectors bit for bit.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_VERIFY_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_VERIFY_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct VerifyArguments {
  std::string reference;
};

// Sends the reference vectors of the version's certificate and compares the bits of the features.
// Sends them one by one, all together, and repeated in a batch that is large enough for the
// engine's path for many rows; each time as float32 and as float64. The message of DATA_LOSS shows
// the first feature that differs. FAILED_PRECONDITION if the version has no reference vectors, or
// if all their features are 0.
absl::Status RunVerify(const VerifyArguments& arguments, CommandContext& context);

// `phimap verify` with its flags.
Command AddVerify(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_VERIFY_COMMAND_H_
