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
  // "csv" or "npy". If empty, the extension of the output determines the format or, if it has none,
  // the format of the input does.
  std::string output_format;
  // Appends the residual of each row as the last column of the output.
  bool residual = false;
  // Limit in seconds for mapping all rows; 0: no limit.
  double timeout_seconds = 0;
  // Keeps the written rows if the command is stopped, and continues from them the next time.
  bool resume = false;
};

// Maps the rows of the input and writes their features. After a failure there is no output file;
// with `resume` the finished rows are kept (see transform_progress.h). Before it reads a row,
// refuses an output that is the same file as the input, and an unknown extension. If the server is
// down, the stream is retried (see client.h).
absl::Status RunTransform(const TransformArguments& arguments, CommandContext& context);

// `phimap transform` with its flags.
Command AddTransform(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_COMMAND_H_
