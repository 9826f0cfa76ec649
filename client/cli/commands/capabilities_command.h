// `phimap capabilities`: what a server can build and learn.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_CAPABILITIES_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_CAPABILITIES_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct CapabilitiesArguments {
  // "mappings", "kernels", "policies" or "learners"; empty: all kinds.
  std::string kind;
  // Name of an entry of that kind; empty for all.
  std::string name;
  bool json = false;
};

// Prints each name with one line of description or, if a kind is given, with its parameters. As
// JSON, prints a ListCapabilitiesResponse that is restricted to the requested entries.
absl::Status RunCapabilities(const CapabilitiesArguments& arguments, CommandContext& context);

// `phimap capabilities` with its flags.
Command AddCapabilities(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_CAPABILITIES_COMMAND_H_
