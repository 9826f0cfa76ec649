// `phimap advise`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_ADVISE_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_ADVISE_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct AdviseArguments {
  // Exactly one of margin and from_evaluation is set. from_evaluation is a file that `phimap
  // evaluate --json` wrote.
  std::optional<double> margin;
  std::string from_evaluation;
  double error = 0;
  double confidence = 0;
  std::optional<double> alpha;
  // Number of points; 0 means that none was given.
  int64_t points = 0;
  int32_t classes = 0;
  double distortion = 0;
  double kernel_error = 0;
  bool json = false;
};

// Prints the dimensions that suffice, as text or as the JSON of an AdviseResponse.
absl::Status RunAdvise(const AdviseArguments& arguments, CommandContext& context);

// `phimap advise` with its flags.
Command AddAdvise(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_ADVISE_COMMAND_H_
