// `phimap prune`: deletes the versions that experiments left.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_COMMAND_H_

#include <istream>
#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/commands/command_context.h"

namespace phimap::cli {

struct PruneArguments {
  // A shell's pattern for mapping names, as in "f2-*".
  std::string pattern;
  // Skips versions that an alias points to, or that an alias rollback would restore. Without this
  // flag such a version is an error, and nothing is deleted.
  bool unaliased = false;
  // Restricts the deletion to versions older than this, such as "7d"; empty means versions of any
  // age.
  std::string older_than;
  bool dry_run = false;
  // Whether to delete without asking.
  bool yes = false;
  bool json = false;
  // Answers typed at the terminal; null without a terminal.
  std::istream* answers = nullptr;
};

// Lists the versions to delete, as a table or as the JSON of a ListVersionsResponse. Then asks the
// user, unless `yes` is set, and deletes these versions and the mappings that have no versions
// left. A version that another client deletes meanwhile is not an error.
absl::Status RunPrune(const PruneArguments& arguments, CommandContext& context);

// `phimap prune` with its flags.
Command AddPrune(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_COMMAND_H_
