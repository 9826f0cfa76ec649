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
  // Definition of the whole command line, which is `phimap` itself.
  const CLI::App& app;
};

// A command of `phimap`. Each command is added, with its flags, by a function in its own file. The
// functions below own the values of the flags.
struct Command {
  // Owned by `phimap`.
  CLI::App* app = nullptr;
  // Exactly one of the two functions is set.
  std::function<absl::Status(CommandContext&)> run = nullptr;
  std::function<absl::Status(LocalContext&)> run_locally = nullptr;
  // Whether --json was given; null for commands without this flag.
  const bool* json = nullptr;
  // Whether Ctrl-C cancels the context's token, so that the command can end tidily.
  bool interruptible = false;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_H_
