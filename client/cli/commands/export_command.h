// `phimap export`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_EXPORT_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_EXPORT_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct ExportArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  // A path, or "-" for standard output.
  std::string output;
};

// Writes a version's artifact to a file that appears only when it is complete and checked. A pipe
// receives the bytes as they arrive.
absl::Status RunExport(const ExportArguments& arguments, CommandContext& context);

// `phimap export` with its flags.
Command AddExport(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_EXPORT_COMMAND_H_
