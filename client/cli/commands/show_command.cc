#include "client/cli/commands/show_command.h"

#include <memory>

#include "CLI/CLI.hpp"
#include "client/cli/views/certificate_view.h"
#include "client/cli/views/json_text.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunShow(const ShowArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.GetVersion(arguments.reference));
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(version));
    context.out << text;
  } else {
    context.out << RenderVersion(version, context.console.width, context.color);
  }
  return absl::OkStatus();
}

Command AddShow(CLI::App& app) {
  auto arguments = std::make_shared<ShowArguments>();
  ShowArguments& show = *arguments;
  CLI::App* command = app.add_subcommand("show", "Show a version and its certificate");
  command
      ->add_option("NAME[@VERSION]", show.reference,
                   "A mapping or a version of it (default: the newest)")
      ->required();
  command->add_flag("--json", show.json, "Print the version as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunShow(*arguments, context); },
          .json = &show.json};
}

}  // namespace phimap::cli
