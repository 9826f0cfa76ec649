// Context of every command.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_CONTEXT_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_CONTEXT_H_

#include <ostream>
#include <string>

#include "client/cli/views/progress_bar.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"

namespace phimap::cli {

// Data goes to `out`, messages and progress to `console`. All outlive the command.
struct CommandContext {
  client::Client& client;
  std::ostream& out;
  Console console;
  client::CancelToken& cancel;
  // Whether `out` is coloured.
  bool color = false;
  // Options with which `client` was connected, for a command that connects once more.
  std::string server = {};
  client::ConnectOptions connect = {};
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_COMMAND_CONTEXT_H_
