// `phimap build`.
#ifndef PHIMAP_CLIENT_CLI_BUILD_COMMAND_H_
#define PHIMAP_CLIENT_CLI_BUILD_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/command_context.h"
#include "client/cli/input_rows.h"

namespace phimap::cli {

struct BuildArguments {
  std::string name;
  // Its columns are of a dry run too: 0 is what the input has.
  InputArguments input;
  std::string mapping;
  std::string kernel;
  bool standardize = false;
  // As it was typed: the command line's own conversion would wrap a negative number.
  std::string seed = "0";
  // How long the version lives after its last use, as in "7d"; empty: for ever.
  std::string ttl;
  bool json = false;
  // Only say what it would take.
  bool dry_run = false;
  // Of a dry run: 0 is what the input has.
  int64_t rows = 0;
};

// Streams the rows of the input into a build and prints the version with its certificate; a dry run
// prints an estimate and builds nothing.
absl::Status RunBuild(const BuildArguments& arguments, CommandContext& context);

// `phimap build` with its flags.
Command AddBuild(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BUILD_COMMAND_H_
