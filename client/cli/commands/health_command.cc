#include "client/cli/commands/health_command.h"

#include <memory>
#include <ostream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunHealth(const HealthArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(
      const bool serving,
      context.client.CheckHealth(arguments.service, absl::Seconds(arguments.timeout_seconds)));
  if (!serving) {
    return absl::FailedPreconditionError(
        absl::StrCat(arguments.service.empty() ? "the server" : arguments.service,
                     " reports that it is not serving; it may be shutting down"));
  }
  context.out << "serving\n";
  return absl::OkStatus();
}

Command AddHealth(CLI::App& app) {
  auto arguments = std::make_shared<HealthArguments>();
  HealthArguments& health = *arguments;
  CLI::App* command =
      app.add_subcommand("health", "Ask whether the server is serving: exit code 0 if it is");
  command->add_option(
      "SERVICE", health.service,
      "A service, such as phimap.v1.TransformService (default: the server as a whole)");
  command
      ->add_option("--timeout", health.timeout_seconds,
                   "Timeout in seconds for the connection and the answer together")
      ->check(CLI::Range(0.01, 3'600.0))
      ->capture_default_str();
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunHealth(*arguments, context); }};
}

}  // namespace phimap::cli
