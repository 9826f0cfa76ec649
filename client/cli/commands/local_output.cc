// The flags of commands that make a version on a server, or a file in this process.
#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/commands/commands.h"

namespace phimap::cli {

void AddLocalOutput(CLI::App& command, LocalOutput& output) {
  command.add_flag("--local", output.local,
                   "Compute in this process, without a server, and write the artifact to -o");
  command.add_option("-o,--output", output.path,
                     "With --local: file of the artifact, such as letters.phimap, with which "
                     "transform, predict, evaluate and inspect need no server, and which import "
                     "stores on one");
}

absl::Status CheckLocalOutput(const LocalOutput& output, bool has_name) {
  if (output.local && output.path.empty()) {
    return absl::InvalidArgumentError(
        "--local: expected -o FILE too, because no server stores what is made in this process");
  }
  if (!output.local && !output.path.empty()) {
    return absl::InvalidArgumentError(
        "-o: a server stores the version; expected --local too, to make a file in this process, or "
        "export the version afterwards");
  }
  if (!output.local && !has_name) {
    return absl::InvalidArgumentError(
        "NAME: expected the name that the version gets on the server; with --local -o FILE it "
        "needs none");
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
