// `phimap inspect`: the content of an exported file, without a server.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_INSPECT_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_INSPECT_COMMAND_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"

namespace phimap::cli {

struct InspectArguments {
  // A path, or "-" for standard input.
  std::string input;
  bool json = false;
};

// Checks an artifact as an import does, including its reference vectors, and prints it: as text
// that is `width` characters wide, or as the JSON of a Version without a name. DATA_LOSS for a file
// that is damaged or is not an artifact.
absl::Status RunInspect(const InspectArguments& arguments, int width, std::ostream& out);

// `phimap inspect` with its flags.
Command AddInspect(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_INSPECT_COMMAND_H_
