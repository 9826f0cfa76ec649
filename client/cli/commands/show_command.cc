// `phimap show`.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/commands/commands.h"
#include "client/cli/local/local_maps.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct ShowArguments {
  // "name", "name@7", "name@alias", "name@sha256:digest", or the path of an artifact.
  std::string reference;
  bool json = false;
};

// Prints a version with its certificate, as text or as the JSON of a Version.
absl::Status RunShow(const ShowArguments& arguments, RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, context.maps.GetVersion(arguments.reference));
  if (arguments.json) return PrintJson(version, context.out);
  context.out << RenderVersion(version, context.console.width, context.color);
  return absl::OkStatus();
}

}  // namespace

Command AddShow(CLI::App& app) {
  auto arguments = std::make_shared<ShowArguments>();
  ShowArguments& show = *arguments;
  CLI::App* command = app.add_subcommand("show", "Show a version and its certificate");
  command
      ->add_option("NAME[@VERSION]", show.reference,
                   "A mapping or a version of it (default: the newest), or a file of an artifact")
      ->required();
  command->add_flag("--json", show.json, "Print the version as JSON");
  return {.app = command,
          .run_on_rows = [arguments](RowContext& context) { return RunShow(*arguments, context); },
          .is_local = [arguments] { return IsArtifactPath(arguments->reference); },
          .json = &show.json};
}

}  // namespace phimap::cli
