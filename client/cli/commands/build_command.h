// `phimap build`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_BUILD_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_BUILD_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct BuildArguments {
  std::string name;
  // The rows. With --dry-run, 0 columns means the number of columns of the input.
  InputArguments input;
  std::string mapping;
  std::string kernel;
  bool standardize = false;
  // The seed as text, because the library's conversion to a number would wrap a negative number.
  std::string seed = "0";
  // Time for which the version lives after its last use, such as "7d"; empty: for ever.
  std::string ttl;
  bool json = false;
  // Whether to estimate the cost only.
  bool dry_run = false;
  // Number of rows for a dry run; 0 means the rows of the input.
  int64_t rows = 0;
};

// Streams the rows of the input into a build and prints the version with its certificate; a dry run
// prints an estimate and builds nothing.
absl::Status RunBuild(const BuildArguments& arguments, CommandContext& context);

// `phimap build` with its flags.
Command AddBuild(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_BUILD_COMMAND_H_
