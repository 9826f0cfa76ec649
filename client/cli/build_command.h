// `phimap build`.
#ifndef PHIMAP_CLIENT_CLI_BUILD_COMMAND_H_
#define PHIMAP_CLIENT_CLI_BUILD_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/command_context.h"

namespace phimap::cli {

struct BuildArguments {
  std::string name;
  // "-" is standard input.
  std::string input;
  // "csv", "npy" or empty: by the extension.
  std::string format;
  std::string label;
  std::string mapping;
  std::string kernel;
  bool standardize = false;
  // As it was typed: the command line's own conversion would wrap a negative number.
  std::string seed = "0";
  bool json = false;
};

// Streams the rows of the input into a build and prints the version with its certificate.
absl::Status RunBuild(const BuildArguments& arguments, CommandContext& context);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BUILD_COMMAND_H_
