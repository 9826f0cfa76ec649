// `phimap keep`: how long a version lives.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_KEEP_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_KEEP_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct KeepArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  // Time for which the version lives after its last use, such as "7d"; empty: for ever.
  std::string ttl;
  bool json = false;
};

// Sets how long the version lives and prints it; as JSON a Version without its certificate.
absl::Status RunKeep(const KeepArguments& arguments, CommandContext& context);

// `phimap keep` with its flags.
Command AddKeep(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_KEEP_COMMAND_H_
