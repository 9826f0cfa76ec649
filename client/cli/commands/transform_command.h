// `phimap transform`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct TransformArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  InputArguments input;
  // "-" is standard output.
  std::string output;
  // "csv", "npy" or empty: by the name, or as the input is.
  std::string output_format;
  // Appends the residual of each row as the last column of the output.
  bool residual = false;
  // Limit for the whole command; 0: no limit.
  double timeout_seconds = 0;
  // Keeps the written rows if the command is stopped, and continues from them the next time.
  bool resume = false;
};

// Maps the rows of the input and writes their features. A failure leaves no output file; with
// `resume` it leaves the finished rows, recorded by transform_progress.h. Refuses, before it reads
// a row, an output that is the input under any name, and an unknown extension. If the server is
// down the stream is retried (client.h).
absl::Status RunTransform(const TransformArguments& arguments, CommandContext& context);

// `phimap transform` with its flags.
Command AddTransform(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_COMMAND_H_
