#include "client/cli/commands/transform_command.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/arguments/input_flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/transform_progress.h"
#include "client/cli/views/error_text.h"
#include "client/cli/views/number_text.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

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

// What --resume found at the output.
struct Resumed {
  TransformProgress progress;
  TransformOrigin origin;
  // Whether there was an earlier run.
  bool earlier = false;
};

// Returns the state of the output. Its `origin` has the version that the earlier run pinned or,
// without an earlier run, the present version of the reference.
absl::StatusOr<Resumed> Resume(const TransformArguments& arguments, TransformOrigin origin,
                               client::Client& client) {
  PHIMAP_ASSIGN_OR_RETURN(TransformProgress progress, TransformProgress::At(arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(std::optional<TransformOrigin> earlier, progress.Earlier(origin));
  if (earlier.has_value()) {
    return Resumed{std::move(progress), *std::move(earlier), /*earlier=*/true};
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, client.GetVersion(arguments.reference));
  origin.version = absl::StrCat(version.ref().mapping(), "@", version.ref().number());
  origin.digest = version.ref().digest();
  return Resumed{std::move(progress), std::move(origin)};
}

// Destination of the rows, and the first row to write.
struct Destination {
  std::unique_ptr<RowWriter> writer = nullptr;
  // Reference of the version, and the digest that it must have; an empty digest is not checked.
  std::string reference;
  std::string digest = {};
  int64_t rows_before = 0;
  // State of the stopped transform; set only with --resume.
  std::optional<TransformProgress> progress = {};
};

absl::StatusOr<Destination> OpenResumable(Resumed resumed, const InputArguments& input,
                                          FileFormat format, std::optional<int64_t> row_count) {
  const TransformOrigin& origin = resumed.origin;
  if (!resumed.earlier) PHIMAP_RETURN_IF_ERROR(resumed.progress.Begin(origin));
  PHIMAP_ASSIGN_OR_RETURN(TransformProgress::Opened opened,
                          resumed.progress.Open(format, row_count, input.passthrough));
  return Destination{std::move(opened.writer), origin.version, origin.digest, opened.rows,
                     std::move(resumed.progress)};
}

// Maps all of `rows`. `rows_mapped` counts up from the number of earlier rows.
absl::StatusOr<client::TransformStreamResult> MapRows(const TransformArguments& arguments,
                                                      client::RowSource& rows,
                                                      const Destination& destination,
                                                      int64_t& rows_mapped,
                                                      CommandContext& context) {
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
  return context.client.TransformStream(destination.reference, rows, sink, options,
                                        &context.cancel);
}

// Reports the output that a stopped transform keeps, before its error.
void SayWhatIsKept(const Destination& destination, int64_t rows, const Console& console) {
  if (!destination.progress.has_value()) return;
  *console.stream << "the features of " << WithThousands(rows) << " rows are kept in "
                  << destination.progress->partial() << "; repeat the command to continue"
                  << std::endl;
}

absl::Status MapAndWrite(const TransformArguments& arguments,
                         std::unique_ptr<client::RowSource> rows, Destination destination,
                         CommandContext& context) {
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
    version = absl::StrCat(result->version.mapping(), "@", result->version.number());
  }
  PHIMAP_RETURN_IF_ERROR(destination.writer->Finish());
  if (destination.progress.has_value()) destination.progress->End();
  *context.console.stream << WithThousands(rows_mapped) << " rows mapped by " << version;
  if (before > 0)
    *context.console.stream << ", " << WithThousands(before) << " of them in earlier runs";
  *context.console.stream << std::endl;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTransform(const TransformArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments files, WithFiles(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat input_format, FormatOf(files));
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat output_format,
                          OutputFormatOf(arguments.output, arguments.output_format, input_format));
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(files, arguments.output));
  std::optional<Resumed> resumed;
  if (arguments.resume) {
    PHIMAP_ASSIGN_OR_RETURN(TransformOrigin origin, OriginOf(arguments.reference, files,
                                                             output_format, arguments.residual));
    PHIMAP_ASSIGN_OR_RETURN(resumed, Resume(arguments, std::move(origin), context.client));
  }
  // Compares with the columns of the pinned version, even if an alias moves meanwhile.
  const std::string& reference =
      resumed.has_value() ? resumed->origin.version : arguments.reference;
  PHIMAP_ASSIGN_OR_RETURN(
      const InputArguments input,
      WithColumnsOf(WithPassthrough(files), context.client, reference, *context.console.stream));
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

namespace {

// Adds the flags that say which columns of the input are mapped, and which are copied.
void AddColumnFlags(CLI::App& command, InputArguments& input) {
  command.add_flag("--by-name", input.choice.by_name,
                   "Find the version's columns in the CSV file by name, in any order");
  command.add_option("--columns", input.columns_given, kColumnsHelp)
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--passthrough", input.choice.passthrough,
                  "Column of the CSV file, such as an id, that is copied to the CSV output "
                  "unchanged; may be repeated")
      ->allow_extra_args(false);
}

}  // namespace

Command AddTransform(CLI::App& app) {
  auto arguments = std::make_shared<TransformArguments>();
  TransformArguments& transform = *arguments;
  CLI::App* command = app.add_subcommand("transform", "Map rows to their features");
  command
      ->add_option("NAME[@VERSION]", transform.reference,
                   "A mapping or a version of it (default: the newest)")
      ->required();
  command
      ->add_option("--output", transform.output,
                   "File of features; its extension determines the format, csv or npy. It appears "
                   "only when it is complete. - is standard output; writing npy to a pipe needs an "
                   "npy input")
      ->required();
  command
      ->add_option("--output-format", transform.output_format,
                   "Format of the output: csv or npy (default: by the extension of --output; if it "
                   "has none, the format of the input, or csv if that cannot hold features)")
      ->check(CLI::IsMember({"csv", "npy"}));
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
      ->check(CLI::Range(0.01, 86'400.0));
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunTransform(*arguments, context); },
          .interruptible = true};
}

}  // namespace phimap::cli
