// `phimap show`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_SHOW_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_SHOW_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct ShowArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  bool json = false;
};

// Prints a version with its certificate, as text or as the JSON of a Version.
absl::Status RunShow(const ShowArguments& arguments, CommandContext& context);

// `phimap show` with its flags.
Command AddShow(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_SHOW_COMMAND_H_
