// `phimap list`.
#ifndef PHIMAP_CLIENT_CLI_LIST_COMMAND_H_
#define PHIMAP_CLIENT_CLI_LIST_COMMAND_H_

#include "absl/status/status.h"
#include "client/cli/command_context.h"

namespace phimap::cli {

struct ListArguments {
  bool json = false;
};

// Prints all mappings by name: a table, or a ListMappingsResponse of one page as JSON.
absl::Status RunList(const ListArguments& arguments, CommandContext& context);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_LIST_COMMAND_H_
