#include "client/cli/advise_command.h"

#include <string>

#include "client/cli/advice_view.h"
#include "client/cli/certified_question.h"
#include "client/cli/json_text.h"
#include "client/cli/paragraph.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

namespace {

// Where the margin comes from, for people; empty when it was given.
absl::StatusOr<std::string> TakeMargin(const AdviseArguments& arguments,
                                       v1::AdviseRequest& request) {
  if (arguments.margin.has_value() != arguments.from_evaluation.empty()) {
    return absl::InvalidArgumentError(
        "expected one of --margin and --from-evaluation: the margin, or an evaluation that "
        "certifies one");
  }
  if (arguments.margin.has_value()) {
    request.set_margin(*arguments.margin);
    request.set_alpha(arguments.alpha.value_or(0));
    return std::string();
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Evaluation evaluation,
                          ReadEvaluation(arguments.from_evaluation));
  return AskFromEvaluation(evaluation, arguments.alpha, request);
}

}  // namespace

absl::Status RunAdvise(const AdviseArguments& arguments, CommandContext& context) {
  v1::AdviseRequest request;
  request.set_classes(arguments.classes);
  PHIMAP_ASSIGN_OR_RETURN(const std::string origin, TakeMargin(arguments, request));
  request.set_error(arguments.error);
  request.set_confidence(arguments.confidence);
  request.set_points(arguments.points);
  request.set_distortion(arguments.distortion);
  request.set_kernel_error(arguments.kernel_error);
  PHIMAP_ASSIGN_OR_RETURN(const v1::AdviseResponse response, context.client.Advise(request));
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(response));
    context.out << text;
  } else {
    if (!origin.empty()) {
      std::string text;
      AppendParagraph(text, "", origin, context.console.width);
      context.out << text;
    }
    context.out << RenderAdvice(request, response, context.console.width);
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
