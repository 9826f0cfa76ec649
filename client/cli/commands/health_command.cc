// `phimap health`: whether a server serves, for a container's health check.
#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct HealthArguments {
  // Name such as phimap.v1.TransformService; empty: the server as a whole.
  std::string service;
  // Limit in seconds for connecting and the answer together.
  double timeout_seconds = 3;
};

// Prints "serving" if the server reports that it is. FAILED_PRECONDITION if it reports that it is
// not, for instance while it drains; NOT_FOUND for an unknown service.
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

}  // namespace

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
      ->check(NumberFrom(0.01, 3'600.0))
      ->capture_default_str();
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunHealth(*arguments, context); }};
}

}  // namespace phimap::cli
