// `phimap import`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_IMPORT_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_IMPORT_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct ImportArguments {
  // A path, or "-" for standard input.
  std::string input;
  // Name of the mapping. Empty: the name of the file up to the first '@' or '.', since an artifact
  // contains no name.
  std::string name;
  bool json = false;
};

// Stores an exported artifact as a version of a mapping, and prints the version with its
// certificate, as text or as the JSON of a Version.
absl::Status RunImport(const ImportArguments& arguments, CommandContext& context);

// `phimap import` with its flags.
Command AddImport(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_IMPORT_COMMAND_H_
