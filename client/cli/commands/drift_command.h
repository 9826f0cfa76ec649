// `phimap drift`: whether served rows still are like those that versions were built from.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_DRIFT_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_DRIFT_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct DriftArguments {
  // "name" for all aliases of a mapping, or "name@alias".
  std::string reference;
  bool json = false;
};

// Prints the evidence for drift of each alias; as JSON a GetDriftResponse. NOT_FOUND if the mapping
// has no such alias.
absl::Status RunDrift(const DriftArguments& arguments, CommandContext& context);

// `phimap drift` with its flags.
Command AddDrift(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_DRIFT_COMMAND_H_
