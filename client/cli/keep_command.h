// `phimap keep`: how long a version lives.
#ifndef PHIMAP_CLIENT_CLI_KEEP_COMMAND_H_
#define PHIMAP_CLIENT_CLI_KEEP_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/command_context.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

struct KeepArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  // How long it lives after its last use, as in "7d"; empty: for ever.
  std::string ttl;
  bool json = false;
};

// Says how long the version lives from now on; a Version without its certificate as JSON.
absl::Status RunKeep(const KeepArguments& arguments, CommandContext& context);

// "for ever", "7d after its last use", and when it expires as things stand. Pure.
std::string LifetimeText(const v1::Version& version);

// `phimap keep` with its flags.
Command AddKeep(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_KEEP_COMMAND_H_
