// `phimap keep`: how long a version lives.
#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct KeepArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  // Time for which the version lives after its last use, such as "7d"; empty: for ever.
  std::string ttl;
  bool json = false;
};

// Sets how long the version lives and prints it; as JSON a Version without its certificate.
absl::Status RunKeep(const KeepArguments& arguments, CommandContext& context) {
  absl::Duration ttl = absl::InfiniteDuration();
  if (!arguments.ttl.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(ttl, DurationOf(arguments.ttl, "--ttl"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.KeepVersion(arguments.reference, ttl));
  if (arguments.json) return PrintJson(version, context.out);
  context.out << client::ReferenceTo(version.ref()) << " lives " << LifetimeText(version) << "\n";
  return absl::OkStatus();
}

}  // namespace

Command AddKeep(CLI::App& app) {
  auto arguments = std::make_shared<KeepArguments>();
  CLI::App* command =
      app.add_subcommand("keep", "Keep a version for ever, or for a time after its last use");
  command
      ->add_option("NAME[@VERSION]", arguments->reference,
                   "A mapping or a version of it (default: the newest)")
      ->required();
  command->add_option("--ttl", arguments->ttl, kTtlHelp);
  command->add_flag("--json", arguments->json, "Print the version as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunKeep(*arguments, context); },
          .json = &arguments->json};
}

}  // namespace phimap::cli
