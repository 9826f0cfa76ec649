// `phimap bench`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_BENCH_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_BENCH_COMMAND_H_

#include "absl/status/status.h"
#include "client/cli/bench/bench_load.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct BenchArguments {
  // `target` and `connect` are set from the context. If `columns` is 0, the number of
  // columns of the version is used.
  LoadOptions load;
  bool json = false;
};

// Loads the server with calls for features for a while and prints the measurements: a table, or one
// JSON object. Calls that fail under load are part of the result; the command fails if the load
// cannot be started.
absl::Status RunBench(const BenchArguments& arguments, CommandContext& context);

// `phimap bench` with its flags.
Command AddBench(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_BENCH_COMMAND_H_
