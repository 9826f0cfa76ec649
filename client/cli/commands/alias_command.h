// `phimap alias`: names for versions, and moving them.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_ALIAS_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_ALIAS_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct AliasArguments {
  // "set", "rollback", "delete" or "list".
  std::string action;
  // "letters@prod"; for list a mapping's name, or empty for all.
  std::string name;
  // The version for `set`: "7", or "sha256:" and at least 7 digits of a digest.
  std::string version;
  // The etag for `set` and `delete`; empty means unconditional.
  std::string etag;
  bool json = false;
};

// Prints the alias's new and previous version, or all aliases; as JSON an Alias or a
// ListMappingsResponse. Deletion prints only a message.
absl::Status RunAlias(const AliasArguments& arguments, CommandContext& context);

// `phimap alias` with its flags.
Command AddAlias(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_ALIAS_COMMAND_H_
