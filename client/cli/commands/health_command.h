// `phimap health`: whether a server serves, for a container's health check.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_HEALTH_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_HEALTH_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct HealthArguments {
  // Name such as phimap.v1.TransformService; empty: the server as a whole.
  std::string service;
  // Limit in seconds for connecting and the answer together.
  double timeout_seconds = 3;
};

// Prints "serving" if the server reports that it is. FAILED_PRECONDITION if it reports that it is
// not, for instance while it drains; NOT_FOUND for an unknown service.
absl::Status RunHealth(const HealthArguments& arguments, CommandContext& context);

// `phimap health` with its flags.
Command AddHealth(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_HEALTH_COMMAND_H_
