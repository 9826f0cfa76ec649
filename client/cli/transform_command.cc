#include "client/cli/transform_command.h"

#include <cstdint>
#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/error_text.h"
#include "client/cli/file_format.h"
#include "client/cli/input_rows.h"
#include "client/cli/number_text.h"
#include "client/cli/output_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

// The share of the rows that is through stands still while the server is away.
ProgressState WaitingForServer(ProgressState state) {
  state.phase = "no answer from the server; trying again";
  const double total = static_cast<double>(state.total_rows.value_or(0));
  state.fraction = total > 0 ? static_cast<double>(state.rows) / total : 0;
  return state;
}

InputArguments WithPassthrough(InputArguments input) {
  if (!input.choice.passthrough.empty()) input.passthrough = std::make_shared<PassthroughCells>();
  return input;
}

}  // namespace

absl::Status RunTransform(const TransformArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat input_format, FormatOf(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat output_format,
                          OutputFormatOf(arguments.output, arguments.output_format, input_format));
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(arguments.input.path, arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input,
                          WithColumnsOf(WithPassthrough(arguments.input), context.client,
                                        arguments.reference, *context.console.stream));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::RowSource> rows,
                          OpenRows(input, context.cancel));
  // Again, now that it is open: /dev/fd/N may have become the input itself.
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(arguments.input.path, arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(
      const std::unique_ptr<RowWriter> writer,
      OpenWriter(arguments.output, output_format, rows->row_count(), input.passthrough));
  NoteColumnsLeftOut(*rows, *context.console.stream);
  absl::StatusOr<client::TransformStreamResult> result;
  int64_t rows_mapped = 0;
  {
    ProgressBar bar(context.console);
    ProgressState state{.label = arguments.reference};
    state.total_rows = rows->row_count();
    const auto sink = [&](client::RowBlock features) {
      rows_mapped += features.rows;
      state.rows = rows_mapped;
      bar.Update(state);
      return writer->Append(features);
    };
    client::TransformStreamOptions options{.residual = arguments.residual};
    options.on_retry = [&](const absl::Status&, absl::Duration) {
      bar.Update(WaitingForServer(state));
    };
    if (arguments.timeout_seconds > 0) options.timeout = absl::Seconds(arguments.timeout_seconds);
    result =
        context.client.TransformStream(arguments.reference, *rows, sink, options, &context.cancel);
  }
  // Answers come in order and before the error: those rows were in the requests before the one at
  // fault.
  if (!result.ok()) return WithInputRow(result.status(), rows_mapped);
  PHIMAP_RETURN_IF_ERROR(writer->Finish());
  *context.console.stream << WithThousands(result->rows) << " rows mapped by "
                          << result->version.mapping() << "@" << result->version.number()
                          << std::endl;
  return absl::OkStatus();
}

}  // namespace phimap::cli
