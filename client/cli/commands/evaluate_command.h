// `phimap evaluate`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_EVALUATE_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_EVALUATE_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct EvaluateArguments {
  std::string reference;
  InputArguments input;
  // Empty: the server's default.
  std::string learner;
  // 0: the server's default.
  double held_out = 0;
  int folds = 0;
  // Unsigned 64-bit integer as text, because CLI11 takes no integer above 2^63.
  std::string seed = "0";
  double confidence = 0;
  bool json = false;
};

// Prints how a learner does on labeled rows: drawn, or an Evaluation as JSON.
absl::Status RunEvaluate(const EvaluateArguments& arguments, CommandContext& context);

// `phimap evaluate` with its flags.
Command AddEvaluate(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_EVALUATE_COMMAND_H_
