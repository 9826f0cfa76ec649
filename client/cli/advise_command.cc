#include "client/cli/advise_command.h"

#include <string>

#include "client/cli/advice_view.h"
#include "client/cli/json_text.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunAdvise(const AdviseArguments& arguments, CommandContext& context) {
  v1::AdviseRequest request;
  request.set_margin(arguments.margin);
  request.set_error(arguments.error);
  request.set_confidence(arguments.confidence);
  request.set_alpha(arguments.alpha);
  request.set_points(arguments.points);
  request.set_classes(arguments.classes);
  request.set_distortion(arguments.distortion);
  request.set_kernel_error(arguments.kernel_error);
  PHIMAP_ASSIGN_OR_RETURN(const v1::AdviseResponse response, context.client.Advise(request));
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(response));
    context.out << text;
  } else {
    context.out << RenderAdvice(request, response, context.console.width);
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
