// A command of `phimap`: its flags and its action.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_H_

#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "client/cli/commands/command_context.h"

namespace CLI {
class App;
}

namespace phimap::cli {

// Context of a command that needs no server.
struct LocalContext {
  std::ostream& out;
  Console console;
  client::CancelToken& cancel;
  // The parts of the command line, `phimap` itself.
  const CLI::App& app;
};

// A command of `phimap`. Its file adds it, with its flags, and keeps the values of the flags for as
// long as the functions live.
struct Command {
  // Owned by `phimap`.
  CLI::App* app = nullptr;
  // One of both.
  std::function<absl::Status(CommandContext&)> run = nullptr;
  std::function<absl::Status(LocalContext&)> run_locally = nullptr;
  // Whether --json was given; null for commands without this flag.
  const bool* json = nullptr;
  // Whether Ctrl-C cancels the context's token, so that the command can end tidily.
  bool interruptible = false;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_H_
