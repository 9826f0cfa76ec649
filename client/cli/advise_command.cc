#include "client/cli/advise_command.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
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
    std::string text = RenderAdvice(request, response, context.console.width);
    if (!origin.empty()) AppendParagraph(text, "", origin, context.console.width);
    context.out << text;
  }
  return absl::OkStatus();
}

Command AddAdvise(CLI::App& app) {
  auto arguments = std::make_shared<AdviseArguments>();
  AdviseArguments& advise = *arguments;
  CLI::App* command = app.add_subcommand(
      "advise", "Say how many landmarks and dimensions suffice, by the theorems of the papers");
  command->add_option(
      "--margin", advise.margin,
      "Margin of the separator, a cosine; divide one that is not by the largest |phi|");
  command->add_option("--error", advise.error, "Error that the mapping may add, as in 0.1")
      ->required();
  command
      ->add_option("--confidence", advise.confidence,
                   "Probability that it holds, 1 - delta, as in 0.95")
      ->required();
  command->add_option("--from-evaluation", advise.from_evaluation,
                      "In the place of --margin: what 'phimap evaluate --json' wrote; the least "
                      "share at which it certifies a margin, unless --alpha names one");
  command->add_option("--alpha", advise.alpha, "Share of the examples that misses the margin");
  command->add_option("--points", advise.points, "Points of a data set, for statements about all");
  command->add_option("--classes", advise.classes, "Classes, for statements about several");
  command->add_option("--distortion", advise.distortion,
                      "How far squared lengths may be off; what halves the margin unless given, "
                      "and 0.1 where there is none");
  command->add_option("--kernel-error", advise.kernel_error,
                      "How far random Fourier features may be off; 0.1 unless given");
  command->add_flag("--json", advise.json, "Print it as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunAdvise(*arguments, context); },
          .json = &advise.json};
}

}  // namespace phimap::cli
