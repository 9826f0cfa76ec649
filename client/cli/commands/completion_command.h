// Completions of the words of `phimap`, for shells.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_COMPLETION_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_COMPLETION_COMMAND_H_

#include <string>

#include "client/cli/commands/command.h"

namespace phimap::cli {

// Returns a script that completes commands, flags, and the values of flags that have a fixed set of
// values; elsewhere it completes file names. It is derived from the commands of `app`. The shell
// must evaluate it: eval "$(phimap completion bash)". Pure.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

// `phimap completion`.
Command AddCompletion(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_COMPLETION_COMMAND_H_
