// `phimap predict`.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/resumable_output.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/files/csv_writer.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

struct PredictArguments {
  std::string reference;
  InputArguments input;
  // "-" is standard output.
  std::string output = "-";
  client::WantedOutputs wanted;
  // Limit in seconds for all rows; 0: no limit.
  double timeout_seconds = 0;
  // Keeps the written rows if the command is stopped, and continues from them the next time.
  bool resume = false;
};

void AppendNumber(double number, std::string& line) {
  // The longest double, -2.2250738585072014e-308, has 24 characters.
  char digits[32];
  line.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr - digits);
  line.push_back(',');
}

class PredictionSink {
 public:
  virtual ~PredictionSink() = default;
  virtual absl::Status Append(const client::Predictions& rows) = 0;
  virtual absl::Status Finish() = 0;
};

// Writes predictions as npy, float64: the index of the class among those of the head, or the
// number; and then the numbers that were asked for, in the order of the CSV output.
class NpyPredictions final : public PredictionSink {
 public:
  explicit NpyPredictions(std::unique_ptr<RowWriter> writer) : writer_(std::move(writer)) {}

  absl::Status Append(const client::Predictions& rows) override {
    if (!rows.sets.empty()) {
      return absl::InvalidArgumentError(
          "--confidence: sets of classes are no numbers, which is what npy holds; write CSV");
    }
    const auto count = static_cast<size_t>(rows.rows());
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(rows.labels.empty() ? rows.values[i] : rows.labels[i]);
      for (const std::vector<double>* more :
           {&rows.scores, &rows.probabilities, &rows.interval_lows, &rows.interval_highs,
            &rows.deviations}) {
        const size_t columns = more->size() / count;
        for (size_t j = 0; j < columns; ++j) values.push_back((*more)[i * columns + j]);
      }
    }
    return writer_->Append(client::MakeRowBlock(absl::MakeConstSpan(values),
                                                static_cast<int32_t>(values.size() / count)));
  }
  absl::Status Finish() override { return writer_->Finish(); }

 private:
  const std::unique_ptr<RowWriter> writer_;
};

// Writes predictions as CSV: a header, then a line for each row. The columns are those of the input
// that are passed through, then `predicted`, the name of the class or the number, and then what was
// asked for.
class CsvPredictions final : public PredictionSink {
 public:
  // `started`: the file has its header already.
  CsvPredictions(std::unique_ptr<OutputFile> file, std::shared_ptr<PassthroughCells> passthrough,
                 bool started = false)
      : file_(std::move(file)), passthrough_(std::move(passthrough)), started_(started) {}

  absl::Status Append(const client::Predictions& rows) override {
    std::string text;
    if (!std::exchange(started_, true)) AppendHeader(rows, text);
    for (int32_t i = 0; i < rows.rows(); ++i) {
      if (passthrough_ != nullptr) AppendCsvCells(passthrough_->Pop(), text);
      AppendRow(rows, i, text);
      text.back() = '\n';
    }
    return file_->Append(text);
  }
  absl::Status Finish() override { return file_->Commit(); }

 private:
  // Appends the names of a column for each class, or of one column.
  static void AppendNames(absl::string_view name, const client::Predictions& rows, size_t columns,
                          std::string& line) {
    for (size_t j = 0; j < columns; ++j) {
      AppendCsvCell(columns == 1 ? std::string(name) : absl::StrCat(name, "_", rows.classes[j]),
                    line);
    }
  }

  void AppendHeader(const client::Predictions& rows, std::string& text) {
    const auto count = static_cast<size_t>(rows.rows());
    if (passthrough_ != nullptr) AppendCsvCells(passthrough_->names(), text);
    absl::StrAppend(&text, "predicted,");
    AppendNames("score", rows, rows.scores.size() / count, text);
    AppendNames("probability", rows, rows.probabilities.size() / count, text);
    if (!rows.sets.empty()) absl::StrAppend(&text, "set,");
    if (!rows.interval_lows.empty()) absl::StrAppend(&text, "low,high,");
    if (!rows.deviations.empty()) absl::StrAppend(&text, "deviation,");
    text.back() = '\n';
  }

  static void AppendNumbers(const std::vector<double>& numbers, int32_t row, int32_t rows,
                            std::string& line) {
    const size_t columns = numbers.size() / static_cast<size_t>(rows);
    for (size_t j = 0; j < columns; ++j) AppendNumber(numbers[row * columns + j], line);
  }

  // The name of a class among those of a set, which are divided by |.
  static std::string InSet(absl::string_view name) {
    return absl::StrReplaceAll(name, {{"\\", "\\\\"}, {"|", "\\|"}});
  }

  static void AppendRow(const client::Predictions& rows, int32_t i, std::string& line) {
    if (rows.labels.empty()) {
      AppendNumber(rows.values[i], line);
    } else {
      AppendCsvCell(rows.classes[rows.labels[i]], line);
    }
    AppendNumbers(rows.scores, i, rows.rows(), line);
    AppendNumbers(rows.probabilities, i, rows.rows(), line);
    if (!rows.sets.empty()) {
      std::string names;
      for (size_t k = 0; k < rows.sets[i].size(); ++k) {
        if (k > 0) names.push_back('|');
        names.append(InSet(rows.classes[rows.sets[i][k]]));
      }
      AppendCsvCell(names, line);
    }
    if (!rows.interval_lows.empty()) {
      AppendNumber(rows.interval_lows[i], line);
      AppendNumber(rows.interval_highs[i], line);
    }
    AppendNumbers(rows.deviations, i, rows.rows(), line);
  }

  const std::unique_ptr<OutputFile> file_;
  const std::shared_ptr<PassthroughCells> passthrough_;
  bool started_;
};

// Names of classes need a format that holds texts, unless npy is asked for.
absl::StatusOr<OutputFormat> FormatOfOutput(const std::string& output) {
  const size_t dot = output.rfind('.');
  const bool named = dot != std::string::npos && output.find('/', dot) == std::string::npos;
  if (!named || output.substr(dot) == ".csv") return OutputFormat::kCsv;
  if (output.substr(dot) == ".npy") return OutputFormat::kNpy;
  return absl::InvalidArgumentError(absl::StrCat(
      "--output: predictions are written as CSV or npy; name a file that ends with .csv or .npy, "
      "got ",
      output));
}

// Where the predictions go, and how many are there already.
struct Predicted {
  std::unique_ptr<PredictionSink> sink = nullptr;
  // Reference of the version, and the digest that it must have; an empty digest is not checked.
  std::string reference;
  std::string digest = {};
  int64_t rows_before = 0;
  // Set only with --resume.
  std::optional<OutputProgress> progress = {};
};

absl::StatusOr<Predicted> Continued(Resumed resumed, const InputArguments& input,
                                    OutputFormat format, std::optional<int64_t> row_count) {
  if (!resumed.earlier) PHIMAP_RETURN_IF_ERROR(resumed.progress.Begin(resumed.origin));
  Predicted destination{.reference = resumed.origin.version, .digest = resumed.origin.digest};
  if (format == OutputFormat::kNpy) {
    PHIMAP_ASSIGN_OR_RETURN(OutputProgress::Opened opened,
                            resumed.progress.Open(format, row_count));
    destination.sink = std::make_unique<NpyPredictions>(std::move(opened.writer));
    destination.rows_before = opened.rows;
  } else {
    PHIMAP_ASSIGN_OR_RETURN(OutputProgress::OpenedLines opened, resumed.progress.OpenLines());
    destination.sink =
        std::make_unique<CsvPredictions>(std::move(opened.file), input.passthrough, opened.started);
    destination.rows_before = opened.rows;
  }
  if (input.passthrough != nullptr) input.passthrough->Skip(destination.rows_before);
  destination.progress = std::move(resumed.progress);
  return destination;
}

absl::StatusOr<Predicted> Begun(const PredictArguments& arguments, const InputArguments& input,
                                OutputFormat format, std::optional<int64_t> row_count) {
  Predicted destination{.reference = arguments.reference};
  if (format == OutputFormat::kNpy) {
    PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<RowWriter> writer,
                            OpenWriter(arguments.output, format, row_count, input.passthrough));
    destination.sink = std::make_unique<NpyPredictions>(std::move(writer));
    return destination;
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Open(arguments.output));
  destination.sink = std::make_unique<CsvPredictions>(std::move(file), input.passthrough);
  return destination;
}

absl::StatusOr<std::optional<Resumed>> ResumedIfAsked(const PredictArguments& arguments,
                                                      const InputArguments& files,
                                                      OutputFormat format, client::RowCalls& maps) {
  if (!arguments.resume) return std::nullopt;
  if (format == OutputFormat::kNpy && !files.choice.passthrough.empty()) {
    return absl::InvalidArgumentError("--passthrough: npy holds numbers only; write CSV");
  }
  const client::WantedOutputs& wanted = arguments.wanted;
  PHIMAP_ASSIGN_OR_RETURN(RowsOrigin origin,
                          OriginOf("predict", arguments.reference, files,
                                   {{"--output", std::string(NameOf(format))},
                                    {"--scores", wanted.scores ? "yes" : "no"},
                                    {"--probabilities", wanted.probabilities ? "yes" : "no"},
                                    {"--confidence", absl::StrFormat("%.17g", wanted.confidence)},
                                    {"--deviations", wanted.deviations ? "yes" : "no"}}));
  PHIMAP_ASSIGN_OR_RETURN(Resumed resumed,
                          Resume(arguments.output, arguments.reference, std::move(origin), maps));
  return std::optional<Resumed>(std::move(resumed));
}

// Predicts the remaining rows. `state` counts up from the rows of earlier runs.
absl::Status PredictRows(const PredictArguments& arguments, client::RowSource& rows,
                         const Predicted& destination, std::string& version, ProgressState& state,
                         RowContext& context) {
  ProgressBar bar(context.console);
  if (rows.row_count().has_value()) state.total_rows = state.rows + *rows.row_count();
  const auto sink = [&](client::Predictions predictions) {
    state.rows += predictions.rows();
    state.share_read = rows.share_read();
    bar.Update(state);
    return destination.sink->Append(predictions);
  };
  client::PredictStreamOptions options{.wanted = arguments.wanted};
  options.expected_digest = destination.digest;
  if (arguments.timeout_seconds > 0) options.timeout = absl::Seconds(arguments.timeout_seconds);
  const absl::StatusOr<client::PredictStreamResult> result =
      context.maps.PredictStream(destination.reference, rows, sink, options, &context.cancel);
  if (result.ok()) version = client::ReferenceTo(result->version);
  return result.status();
}

// Predicts the rows of the input and writes the predictions. After a failure there is no output
// file; with --resume the finished rows are kept.
absl::Status RunPredict(const PredictArguments& arguments, RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(InputArguments files, WithFiles(arguments.input));
  PHIMAP_ASSIGN_OR_RETURN(const OutputFormat format, FormatOfOutput(arguments.output));
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(files, arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(std::optional<Resumed> resumed,
                          ResumedIfAsked(arguments, files, format, context.maps));
  if (!files.choice.passthrough.empty()) files.passthrough = std::make_shared<PassthroughCells>();
  const std::string reference = resumed.has_value() ? resumed->origin.version : arguments.reference;
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input,
                          WithColumnsOf(files, context.maps, reference, *context.console.stream));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<client::RowSource> rows, OpenRows(input, context.cancel));
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(files, arguments.output));
  NoteColumnsLeftOut(*rows, *context.console.stream);
  PHIMAP_ASSIGN_OR_RETURN(const Predicted destination,
                          resumed.has_value()
                              ? Continued(*std::move(resumed), input, format, rows->row_count())
                              : Begun(arguments, input, format, rows->row_count()));
  const int64_t before = destination.rows_before;
  if (before > 0) {
    PHIMAP_ASSIGN_OR_RETURN(rows, RowsBehind(std::move(rows), before, context.cancel));
  }
  ProgressState state{.label = arguments.reference, .rows = before};
  std::string version = destination.reference;
  if (rows != nullptr) {
    const absl::Status predicted =
        PredictRows(arguments, *rows, destination, version, state, context);
    if (!predicted.ok()) {
      if (destination.progress.has_value() && state.rows > 0) {
        *context.console.stream << "the predictions of " << LongCountOf(state.rows, "row")
                                << " are kept in " << destination.progress->partial()
                                << "; repeat the command to continue" << std::endl;
      }
      // Answers arrive in order, so all of them belong to requests before the faulty one.
      return WithInputRow(predicted, state.rows);
    }
  }
  PHIMAP_RETURN_IF_ERROR(destination.sink->Finish());
  if (destination.progress.has_value()) destination.progress->End();
  *context.console.stream << LongCountOf(state.rows, "row") << " predicted by " << version;
  if (before > 0) {
    *context.console.stream << ", " << WithThousands(before) << " of them in earlier runs";
  }
  *context.console.stream << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command AddPredict(CLI::App& app) {
  auto arguments = std::make_shared<PredictArguments>();
  PredictArguments& predict = *arguments;
  CLI::App* command = app.add_subcommand(
      "predict", "Predict the classes or numbers of rows, by a version that was trained");
  command
      ->add_option("NAME[@VERSION]", predict.reference,
                   "A mapping or a version of it (default: the newest), or an artifact's file, "
                   "which needs no "
                   "server")
      ->required();
  command->add_option(
      "-o,--output", predict.output,
      "File of predictions, csv or npy, which appears only when it is complete; npy "
      "has the index of a class in place of its name; - is standard output "
      "(default)");
  AddInput(*command, predict.input, kLabelHelp);
  AddColumnFlags(*command, predict.input);
  command->add_flag("--scores", predict.wanted.scores, "Add the scores");
  command->add_flag("--probabilities", predict.wanted.probabilities,
                    "Add a column for each class: its probability");
  command
      ->add_option("--confidence", predict.wanted.confidence,
                   "Add a set of classes (A|B, and \\| for a bar in a name), or the ends of an "
                   "interval, that holds the truth with this probability, such as 0.9")
      ->check(NumberFrom(1e-9, 0.999999));
  command->add_flag("--deviations", predict.wanted.deviations,
                    "Add the standard deviation of each number, where the head has them");
  command->add_flag("--resume", predict.resume,
                    "If stopped, keep the finished rows in OUTPUT.partial. The same command then "
                    "continues there, with the same version");
  command
      ->add_option("--timeout", predict.timeout_seconds,
                   "Timeout in seconds for all rows together (default: none)")
      ->check(NumberFrom(0.01, 86'400));
  return {
      .app = command,
      .run_on_rows = [arguments](RowContext& context) { return RunPredict(*arguments, context); },
      .is_local = [arguments] { return IsArtifactPath(arguments->reference); },
      .interruptible = true};
}

}  // namespace phimap::cli
