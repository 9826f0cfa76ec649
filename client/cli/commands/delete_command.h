// `phimap delete`.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_DELETE_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_DELETE_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct DeleteArguments {
  // "letters@7", or "letters" with `all_versions`.
  std::string reference;
  bool all_versions = false;
  // Deletes a version even if the rollback of an alias would need it.
  bool give_up_rollback = false;
};

// Deletes a version, or a mapping with all its versions. A version must be given by its number or
// digest. A bare name does not suffice, nor does an alias, which may move before it is looked up.
absl::Status RunDelete(const DeleteArguments& arguments, CommandContext& context);

// `phimap delete` with its flags.
Command AddDelete(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_DELETE_COMMAND_H_
