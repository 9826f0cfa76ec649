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
  // Text of the learner; empty means the server's default.
  std::string learner;
  // Share of the rows to test on; 0 means the server's default.
  double held_out = 0;
  int folds = 0;
  // Unsigned 64-bit integer as text, because CLI11 takes no integer above 2^63.
  std::string seed = "0";
  double confidence = 0;
  bool json = false;
};

// Prints how well a learner does on labeled rows, as text or as the JSON of an Evaluation.
absl::Status RunEvaluate(const EvaluateArguments& arguments, CommandContext& context);

// `phimap evaluate` with its flags.
Command AddEvaluate(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_EVALUATE_COMMAND_H_
