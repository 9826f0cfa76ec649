// Completions of the words of `phimap`, for shells.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_COMPLETION_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_COMPLETION_COMMAND_H_

#include <string>

#include "client/cli/commands/command.h"

namespace phimap::cli {

// Scripts that complete commands, flags, and the values of flags that take one of a few; files
// elsewhere. Made of the commands that `app` has, so nothing has to be kept in step. To be read by
// the shell: eval "$(phimap completion bash)". Pure.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

// `phimap completion`.
Command AddCompletion(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_COMPLETION_COMMAND_H_
