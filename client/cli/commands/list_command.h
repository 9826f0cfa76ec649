// `phimap list`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_LIST_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_LIST_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct ListArguments {
  // Mapping whose versions are listed; empty lists the mappings.
  std::string name;
  bool json = false;
};

// Prints all mappings by name, or the versions of one mapping, newest first: as a table, or as the
// JSON of one ListMappingsResponse or ListVersionsResponse.
absl::Status RunList(const ListArguments& arguments, CommandContext& context);

// `phimap list` with its flags.
Command AddList(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_LIST_COMMAND_H_
