#include "client/cli/evaluate_command.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "client/cli/evaluation_view.h"
#include "client/cli/input_rows.h"
#include "client/cli/json_text.h"
#include "client/cli/seed_argument.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

ProgressState StateOf(const client::EvaluateProgress& progress, const std::string& label) {
  ProgressState state{.label = label, .rows = progress.rows_sent};
  if (!progress.sent) return state;
  state.fraction = progress.server.fraction();
  const bool computing = progress.server.state() == v1::EvaluateProgress::COMPUTING;
  state.phase = computing ? "learning" : "waiting for its turn";
  return state;
}

}  // namespace

absl::Status RunEvaluate(const EvaluateArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(arguments.seed));
  const client::EvaluateOptions options{.reference = arguments.reference,
                                        .learner = arguments.learner,
                                        .held_out = arguments.held_out,
                                        .folds = arguments.folds,
                                        .seed = seed,
                                        .confidence = arguments.confidence};
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments files, WithFiles(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input,
                          WithColumnsOf(files, context.client, arguments.reference,
                                        *context.console.stream));
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
    evaluation = context.client.Evaluate(options, *rows, show, &context.cancel);
  }
  PHIMAP_RETURN_IF_ERROR(evaluation.status());
  if (arguments.json) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(*evaluation));
    context.out << text;
  } else {
    context.out << RenderEvaluation(*evaluation, context.console.width);
  }
  return absl::OkStatus();
}

}  // namespace phimap::cli
