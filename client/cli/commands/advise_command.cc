// `phimap advise`.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/commands/certified_question.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct AdviseArguments {
  // Exactly one of margin and from_evaluation is set. from_evaluation is a file that `phimap
  // evaluate --json` wrote.
  std::optional<double> margin;
  std::string from_evaluation;
  double error = 0;
  double confidence = 0;
  std::optional<double> alpha;
  // Number of points; 0 means that none was given.
  int64_t points = 0;
  int32_t classes = 0;
  double distortion = 0;
  double kernel_error = 0;
  bool json = false;
};

// Sets the margin in `request`. Returns a sentence for people that says where the margin comes
// from; empty if the margin was given.
absl::StatusOr<std::string> TakeMargin(const AdviseArguments& arguments,
                                       v1::AdviseRequest& request) {
  if (arguments.margin.has_value() != arguments.from_evaluation.empty()) {
    return absl::InvalidArgumentError("expected one of --margin and --from-evaluation");
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

// Prints the dimensions that suffice, as text or as the JSON of an AdviseResponse.
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
  if (arguments.json) return PrintJson(response, context.out);
  std::string text = RenderAdvice(request, response, context.console.width);
  if (!origin.empty()) AppendParagraph(text, "", origin, context.console.width);
  context.out << text;
  return absl::OkStatus();
}

}  // namespace

Command AddAdvise(CLI::App& app) {
  auto arguments = std::make_shared<AdviseArguments>();
  AdviseArguments& advise = *arguments;
  CLI::App* command = app.add_subcommand(
      "advise", "Say how many landmarks and dimensions the papers' theorems require");
  command->add_option("--margin", advise.margin,
                      "Margin of the separator as a cosine; a margin that is not a cosine must be "
                      "divided by the largest |phi(x)|");
  command->add_option("--error", advise.error, "Error that the mapping may add, such as 0.1")
      ->required();
  command
      ->add_option("--confidence", advise.confidence,
                   "Probability 1 - delta that the statement holds, such as 0.95")
      ->required();
  command->add_option("--from-evaluation", advise.from_evaluation,
                      "Output of 'phimap evaluate --json', instead of --margin; uses the smallest "
                      "share with a certified margin, unless --alpha gives a share");
  command->add_option("--alpha", advise.alpha, "Share of the examples that miss the margin");
  command->add_option("--points", advise.points,
                      "Number of points of a data set, for the theorems about all points together");
  command->add_option("--classes", advise.classes,
                      "Number of classes, for the theorems about several classes");
  command->add_option("--distortion", advise.distortion,
                      "Largest relative error of squared lengths (default: the one that halves the "
                      "margin, or 0.1 without a margin)");
  command->add_option(
      "--kernel-error", advise.kernel_error,
      "Largest error of a kernel value with random Fourier features (default: 0.1)");
  command->add_flag("--json", advise.json, "Print the advice as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunAdvise(*arguments, context); },
          .json = &advise.json};
}

}  // namespace phimap::cli
