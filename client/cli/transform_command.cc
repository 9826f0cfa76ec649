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

// --output-format, else the extension, else --format, else the input's format: what comes through a
// pipe has no name.
absl::StatusOr<FileFormat> OutputFormatOf(const TransformArguments& arguments,
                                          FileFormat input_format) {
  if (!arguments.output_format.empty()) {
    return FormatOf(arguments.output, arguments.output_format, "--output-format");
  }
  const absl::StatusOr<FileFormat> by_name = FormatOf(arguments.output, "", "--output-format");
  if (by_name.ok()) return *by_name;
  // Features are dense.
  const bool dense = input_format == FileFormat::kCsv || input_format == FileFormat::kNpy;
  return dense ? input_format : FileFormat::kCsv;
}

}  // namespace

absl::Status RunTransform(const TransformArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat input_format, FormatOf(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat output_format, OutputFormatOf(arguments, input_format));
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(arguments.input.path, arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input,
                          WithColumnsOf(arguments.input, context.client, arguments.reference));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::RowSource> rows,
                          OpenRows(input, context.cancel));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<RowWriter> writer,
                          OpenWriter(arguments.output, output_format, rows->row_count()));
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
