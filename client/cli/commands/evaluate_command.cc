// `phimap evaluate`.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct EvaluateArguments {
  std::string reference;
  InputArguments input;
  // Text of the learner; empty means the server's default.
  std::string learner;
  // Share of the rows to test on; 0 means the server's default.
  double held_out = 0;
  int folds = 0;
  // Unsigned 64-bit integer as text, because CLI11 takes no integer above 2^63.
  std::string seed = "0";
  double confidence = 0;
  bool json = false;
};

ProgressState StateOf(const client::EvaluateProgress& progress, const std::string& label) {
  ProgressState state{.label = label, .rows = progress.rows_sent};
  if (!progress.sent) return state;
  state.fraction = progress.server.fraction();
  const bool computing = progress.server.state() == v1::EvaluateProgress::STATE_COMPUTING;
  state.phase = computing ? "learning" : "waiting for its turn";
  return state;
}

// Prints how well a learner does on labeled rows, as text or as the JSON of an Evaluation.
absl::Status RunEvaluate(const EvaluateArguments& arguments, RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(arguments.seed));
  const client::EvaluateOptions options{.reference = arguments.reference,
                                        .learner = arguments.learner,
                                        .held_out = arguments.held_out,
                                        .folds = arguments.folds,
                                        .seed = seed,
                                        .confidence = arguments.confidence};
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments files, WithFiles(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(
      const InputArguments input,
      WithColumnsOf(files, context.maps, arguments.reference, *context.console.stream));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::LabeledRowSource> rows,
                          OpenLabeledRows(input, context.cancel));
  NoteColumnsLeftOut(*rows, *context.console.stream);
  absl::StatusOr<v1::Evaluation> evaluation;
  {
    ProgressBar bar(context.console);
    const auto show = [&](const client::EvaluateProgress& progress) {
      ProgressState state = StateOf(progress, arguments.reference);
      state.total_rows = rows->row_count();
      state.share_read = rows->share_read();
      bar.Update(std::move(state));
    };
    evaluation = context.maps.Evaluate(options, *rows, show, &context.cancel);
  }
  PHIMAP_RETURN_IF_ERROR(evaluation.status());
  if (arguments.json) return PrintJson(*evaluation, context.out);
  context.out << RenderEvaluation(*evaluation, context.console.width);
  return absl::OkStatus();
}

}  // namespace

Command AddEvaluate(CLI::App& app) {
  auto arguments = std::make_shared<EvaluateArguments>();
  EvaluateArguments& evaluate = *arguments;
  CLI::App* command = app.add_subcommand(
      "evaluate", "Train and test a learner on labeled rows, and measure its margins");
  command
      ->add_option("NAME[@VERSION]", evaluate.reference,
                   "A mapping or a version of it (default: the newest), or an artifact's file, "
                   "which needs no "
                   "server; the learner uses its features")
      ->required();
  AddInput(*command, evaluate.input,
           "Column of the labels of a CSV file, which may be any text; each line of an "
           "svmlight file begins with its label");
  command->add_flag("--by-name", evaluate.input.choice.by_name,
                    "Find the version's columns in the CSV file by name, in any order");
  command->add_option("--columns", evaluate.input.columns_given, kColumnsHelp)
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--learner", evaluate.learner,
                      "Learner, as NAME(PARAMETER=VALUE, ...); 'phimap capabilities learners' "
                      "lists them and marks the default");
  CLI::Option* const held_out = command->add_option("--held-out", evaluate.held_out,
                                                    "Share of the rows to test on (default: 0.3)");
  command->add_option("--folds", evaluate.folds, "Cross-validate in this many folds")
      ->excludes(held_out);
  command->add_option("--seed", evaluate.seed,
                      "Random seed of the split and the learner, 0 to 2^64 - 1 (default: 0)");
  command->add_option("--confidence", evaluate.confidence,
                      "Confidence of the certified margins for future rows (default: 0.95)");
  command->add_flag("--json", evaluate.json, "Print the evaluation as JSON");
  return {
      .app = command,
      .run_on_rows = [arguments](RowContext& context) { return RunEvaluate(*arguments, context); },
      .is_local = [arguments] { return IsArtifactPath(arguments->reference); },
      .json = &evaluate.json,
      .interruptible = true};
}

}  // namespace phimap::cli
