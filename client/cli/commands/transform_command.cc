// `phimap transform`.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/resumable_output.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/cpp/row_source.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "client/files/passthrough_cells.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

struct TransformArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  InputArguments input;
  // "-" is standard output.
  std::string output;
  // "csv", "npy" or "copy". If empty, the extension of the output determines the format or, if it
  // has none, the format of the input does.
  std::string output_format;
  // Appends the residual of each row as the last column of the output.
  bool residual = false;
  // Limit in seconds for mapping all rows; 0: no limit.
  double timeout_seconds = 0;
  // Keeps the written rows if the command is stopped, and continues from them the next time.
  bool resume = false;
};

// Returns the progress to show while the server is down: the share of the finished rows stays
// constant.
ProgressState WaitingForServer(ProgressState state) {
  state.phase = "no answer from the server; trying again";
  const double total = static_cast<double>(state.total_rows.value_or(0));
  state.fraction =
      total > 0 ? static_cast<double>(state.rows) / total : state.share_read.value_or(0);
  return state;
}

InputArguments WithPassthrough(InputArguments input) {
  if (!input.choice.passthrough.empty()) input.passthrough = std::make_shared<PassthroughCells>();
  return input;
}

// Destination of the rows, and the first row to write.
struct Destination {
  std::unique_ptr<RowWriter> writer = nullptr;
  // Reference of the version, and the digest that it must have; an empty digest is not checked.
  std::string reference;
  std::string digest = {};
  int64_t rows_before = 0;
  // State of the stopped transform; set only with --resume.
  std::optional<OutputProgress> progress = {};
};

absl::StatusOr<Destination> OpenResumable(Resumed resumed, const InputArguments& input,
                                          OutputFormat format, std::optional<int64_t> row_count) {
  const RowsOrigin& origin = resumed.origin;
  if (!resumed.earlier) PHIMAP_RETURN_IF_ERROR(resumed.progress.Begin(origin));
  PHIMAP_ASSIGN_OR_RETURN(OutputProgress::Opened opened,
                          resumed.progress.Open(format, row_count, input.passthrough));
  return Destination{std::move(opened.writer), origin.version, origin.digest, opened.rows,
                     std::move(resumed.progress)};
}

// Maps all of `rows`. `rows_mapped` counts up from the number of earlier rows.
absl::StatusOr<client::TransformStreamResult> MapRows(const TransformArguments& arguments,
                                                      client::RowSource& rows,
                                                      const Destination& destination,
                                                      int64_t& rows_mapped, RowContext& context) {
  ProgressBar bar(context.console);
  ProgressState state{.label = arguments.reference};
  if (rows.row_count().has_value()) state.total_rows = rows_mapped + *rows.row_count();
  const auto sink = [&](client::RowBlock features) {
    rows_mapped += features.rows;
    state.rows = rows_mapped;
    state.share_read = rows.share_read();
    bar.Update(state);
    return destination.writer->Append(features);
  };
  client::TransformStreamOptions options{.expected_digest = destination.digest,
                                         .residual = arguments.residual};
  options.on_retry = [&](const absl::Status&, absl::Duration) {
    bar.Update(WaitingForServer(state));
  };
  if (arguments.timeout_seconds > 0) options.timeout = absl::Seconds(arguments.timeout_seconds);
  return context.maps.TransformStream(destination.reference, rows, sink, options, &context.cancel);
}

// Reports the output that a stopped transform keeps, before its error.
void SayWhatIsKept(const Destination& destination, int64_t rows, const Console& console) {
  if (!destination.progress.has_value()) return;
  *console.stream << "the features of " << LongCountOf(rows, "row") << " are kept in "
                  << destination.progress->partial() << "; repeat the command to continue"
                  << std::endl;
}

absl::Status MapAndWrite(const TransformArguments& arguments,
                         std::unique_ptr<client::RowSource> rows, Destination destination,
                         RowContext& context) {
  const int64_t before = destination.rows_before;
  if (before > 0) {
    PHIMAP_ASSIGN_OR_RETURN(rows, RowsBehind(std::move(rows), before, context.cancel));
  }
  int64_t rows_mapped = before;
  std::string version = destination.reference;
  if (rows != nullptr) {
    const absl::StatusOr<client::TransformStreamResult> result =
        MapRows(arguments, *rows, destination, rows_mapped, context);
    if (!result.ok()) {
      SayWhatIsKept(destination, rows_mapped, context.console);
      // Answers arrive in order, so all of them belong to requests before the faulty one.
      return WithInputRow(result.status(), rows_mapped);
    }
    version = client::ReferenceTo(result->version);
  }
  PHIMAP_RETURN_IF_ERROR(destination.writer->Finish());
  if (destination.progress.has_value()) destination.progress->End();
  *context.console.stream << LongCountOf(rows_mapped, "row") << " mapped by " << version;
  if (before > 0)
    *context.console.stream << ", " << WithThousands(before) << " of them in earlier runs";
  *context.console.stream << std::endl;
  return absl::OkStatus();
}

// Maps the rows of the input and writes their features. After a failure there is no output file;
// with `resume` the finished rows are kept (see OutputProgress). Before it reads a row,
// refuses an output that is the same file as the input, and an unknown extension. If the server is
// down, the stream is retried (see client.h).
absl::Status RunTransform(const TransformArguments& arguments, RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments files, WithFiles(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat input_format, FormatOf(files));
  PHIMAP_ASSIGN_OR_RETURN(const OutputFormat output_format,
                          OutputFormatOf(arguments.output, arguments.output_format, input_format));
  if (output_format == OutputFormat::kCopy && arguments.residual) {
    // Inside the vector it would count in every distance.
    return absl::InvalidArgumentError(
        "--residual: copy holds the features of a row as one vector, of which the residual is no "
        "part; write csv or npy");
  }
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(files, arguments.output));
  std::optional<Resumed> resumed;
  if (arguments.resume) {
    PHIMAP_ASSIGN_OR_RETURN(RowsOrigin origin,
                            OriginOf("transform", arguments.reference, files,
                                     {{"--output-format", std::string(NameOf(output_format))},
                                      {"--residual", arguments.residual ? "yes" : "no"}}));
    PHIMAP_ASSIGN_OR_RETURN(
        resumed, Resume(arguments.output, arguments.reference, std::move(origin), context.maps));
  }
  // Compares with the columns of the pinned version, even if an alias moves meanwhile.
  const std::string& reference =
      resumed.has_value() ? resumed->origin.version : arguments.reference;
  PHIMAP_ASSIGN_OR_RETURN(
      const InputArguments input,
      WithColumnsOf(WithPassthrough(files), context.maps, reference, *context.console.stream));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<client::RowSource> rows, OpenRows(input, context.cancel));
  // Checked again after opening, because /dev/fd/N may have become the input itself.
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(files, arguments.output));
  NoteColumnsLeftOut(*rows, *context.console.stream);
  Destination destination{.reference = arguments.reference};
  if (resumed.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(
        destination, OpenResumable(*std::move(resumed), input, output_format, rows->row_count()));
    if (input.passthrough != nullptr) input.passthrough->Skip(destination.rows_before);
  } else {
    PHIMAP_ASSIGN_OR_RETURN(destination.writer, OpenWriter(arguments.output, output_format,
                                                           rows->row_count(), input.passthrough));
  }
  return MapAndWrite(arguments, std::move(rows), std::move(destination), context);
}

}  // namespace

Command AddTransform(CLI::App& app) {
  auto arguments = std::make_shared<TransformArguments>();
  TransformArguments& transform = *arguments;
  CLI::App* command = app.add_subcommand("transform", "Map rows to their features");
  command
      ->add_option("NAME[@VERSION]", transform.reference,
                   "A mapping or a version of it (default: the newest), or an artifact's file, "
                   "which needs no "
                   "server")
      ->required();
  command
      ->add_option("-o,--output", transform.output,
                   "File of features; its extension determines the format, csv, npy or copy. It "
                   "appears only when it is complete. - is standard output; writing npy to a pipe "
                   "needs an npy input")
      ->required();
  command
      ->add_option("--output-format", transform.output_format,
                   "Format of the output: csv, npy, or copy (PostgreSQL's COPY, for pgvector) "
                   "(default: by the extension of --output; if it has none, the format of the "
                   "input, or csv if that cannot hold features)")
      ->check(OneOf({"csv", "npy", "copy"}));
  AddInput(*command, transform.input, kLabelHelp);
  AddColumnFlags(*command, transform.input);
  command->add_flag("--residual", transform.residual,
                    "Append rho(x) = K(x,x) - |F(x)|^2, from 0 to K(x,x), as the last column: what "
                    "the features lack of each row; only for mappings that have residuals");
  command->add_flag("--resume", transform.resume,
                    "If stopped, keep the finished rows in OUTPUT.partial. The same command then "
                    "continues there, with the same version; the output has the same bytes as "
                    "without the stop");
  command
      ->add_option("--timeout", transform.timeout_seconds,
                   "Timeout in seconds for all rows together (default: none)")
      ->check(NumberFrom(0.01, 86'400.0));
  return {
      .app = command,
      .run_on_rows = [arguments](RowContext& context) { return RunTransform(*arguments, context); },
      .is_local = [arguments] { return IsArtifactPath(arguments->reference); },
      .interruptible = true};
}

}  // namespace phimap::cli
