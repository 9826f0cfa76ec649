// `phimap sweep`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/command.h"

namespace phimap::cli {

struct SweepArguments {
  InputArguments input;
  // Lists, separated by commas.
  std::string mappings;
  std::string landmarks;
  std::string dimensions;
  std::string policies;
  std::string seeds = "0";
  // Texts of kernels; empty for mappings that need no kernel.
  std::vector<std::string> kernels;
  // Text of the learner; empty means the server's default.
  std::string learner;
  bool standardize = false;
  // Path of the file of JSON lines.
  std::string output;
};

// Builds each mapping from the rows, and measures the error of a learner on its features, its
// kernel error, and the time of Transform. Each such point is appended to the output as a line once
// it is complete, so that it survives a crash. Points that already have a line are skipped.
// Versions are deleted after they are measured. Prints a table.
absl::Status RunSweep(const SweepArguments& arguments, CommandContext& context);

// `phimap sweep` with its flags.
Command AddSweep(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_COMMAND_H_
