#include "client/cli/show_command.h"

#include "client/cli/certificate_view.h"
#include "client/cli/json_text.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunShow(const ShowArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.GetVersion(arguments.reference));
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(version));
    context.out << text;
  } else {
    context.out << RenderVersion(version, context.console.width);
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
