// `phimap transform`.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/row_source.h"
#include "client/files/csv_writer.h"
#include "client/files/file_format.h"
#include "client/files/input_file.h"
#include "client/files/npy_file.h"
#include "client/files/output_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct WholeRows {
  int64_t rows = 0;
  // Bytes up to the end of the last whole row; 0 if the header is incomplete.
  int64_t end = 0;
  // Header of an npy file.
  NpyHeader npy;
};

constexpr size_t kReadSizeBytes = 1 << 20;

// Counts the line ends. Cells of features contain none, so each line end completes the header or a
// row.
absl::StatusOr<WholeRows> FindWholeLines(InputFile& file) {
  WholeRows whole{.rows = -1};
  std::vector<char> buffer(kReadSizeBytes);
  int64_t offset = 0;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const size_t size, file.Read(buffer.data(), buffer.size()));
    if (size == 0) break;
    const char* const end = buffer.data() + size;
    for (const char* next = buffer.data();
         (next = static_cast<const char*>(std::memchr(next, '\n', end - next))) != nullptr;) {
      ++next;
      ++whole.rows;
      whole.end = offset + (next - buffer.data());
      if (next == end) break;
    }
    offset += static_cast<int64_t>(size);
  }
  whole.rows = std::max<int64_t>(whole.rows, 0);
  return whole;
}

// Counts the whole rows of a file that was begun by CsvWriter or NpyWriter, depending on `format`.
// kInvalidArgument for any other file. Reads all of a CSV file, but only the header of npy.
absl::StatusOr<WholeRows> FindWholeRows(const std::string& path, FileFormat format) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
  if (format == FileFormat::kCsv) return FindWholeLines(*file);
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error || size < kNpyHeaderSizeBytes) return WholeRows{};
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<NpyReader> reader,
                          NpyReader::Open(std::move(file)));
  WholeRows whole{.npy = reader->header()};
  const int64_t row_bytes = whole.npy.columns * StoredSizeBytes(whole.npy.type);
  whole.rows = (size - kNpyHeaderSizeBytes) / row_bytes;
  whole.end = kNpyHeaderSizeBytes + whole.rows * row_bytes;
  return whole;
}

// Origin of the features. A version is pinned by its digest: an alias may have moved.
struct TransformOrigin {
  // The user's request as lines of a name and a value, including the size and time of each file.
  std::vector<std::pair<std::string, std::string>> asked;
  // "letters@3", and its digest.
  std::string version;
  std::string digest;
};

// OUTPUT.partial holds the rows written so far, and OUTPUT.resume is a text that states their
// origin. After kill -9 the last row may be incomplete; the command then continues after the last
// whole row of OUTPUT.partial.
//
// Use: At, then Earlier, then Begin unless there was an earlier run, then Open, then End. Not
// thread-safe.
class TransformProgress {
 public:
  // `output` is a path of a file. kInvalidArgument if it leads to a device or a pipe,
  // kFailedPrecondition if another process writes OUTPUT.partial.
  static absl::StatusOr<TransformProgress> At(const std::string& output);

  // Returns the request of an earlier run and the version that it pinned; nullopt if there was no
  // earlier run. kInvalidArgument if that request differs from `origin`; the message shows the
  // first line that differs.
  absl::StatusOr<std::optional<TransformOrigin>> Earlier(const TransformOrigin& origin) const;
  // Records the origin of the following rows, and drops the rows of OUTPUT.partial.
  absl::Status Begin(const TransformOrigin& origin);

  struct Opened {
    std::unique_ptr<RowWriter> writer;
    // Whole rows that are written already.
    int64_t rows = 0;
  };
  // Returns a writer that appends to the whole rows of OUTPUT.partial; its Finish creates OUTPUT.
  // For `passthrough`, see CsvWriter.
  absl::StatusOr<Opened> Open(FileFormat format, std::optional<int64_t> row_count,
                              std::shared_ptr<PassthroughCells> passthrough = nullptr);
  // Removes OUTPUT.resume. Call it once OUTPUT exists.
  void End() const;

  const std::string& partial() const { return partial_; }

 private:
  explicit TransformProgress(const std::string& output);

  std::string output_;
  std::string partial_;
  std::string note_;
  // OUTPUT.partial, locked against other processes. Open passes it to the writer.
  std::unique_ptr<OutputFile> file_;
};

constexpr char kFirstLine[] = "phimap-transform-1";
constexpr char kVersion[] = "version";
constexpr char kDigest[] = "digest";

// A file name may contain line ends, but an entry must stay on one line.
std::string OnOneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

absl::StatusOr<std::string> DescribeFile(const std::string& path) {
  struct stat info;
  if (path == "-" || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: the input must be files, which can be read again, but ", path,
                     " is not a file; without --resume it may be a pipe"));
  }
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).string();
  return absl::StrCat(OnOneLine(whole), ", ", info.st_size, " bytes, changed at ",
                      info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

std::string TextOf(const TransformOrigin& origin) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const auto& [name, value] : origin.asked) absl::StrAppend(&text, name, ": ", value, "\n");
  absl::StrAppend(&text, kVersion, ": ", origin.version, "\n", kDigest, ": ", origin.digest, "\n");
  return text;
}

// Returns the lines after the first, split into names and values; empty if the text has another
// format.
std::vector<std::pair<std::string, std::string>> LinesOf(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> lines;
  const std::vector<std::string> all = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (all.empty() || all[0] != kFirstLine) return lines;
  for (size_t i = 1; i < all.size(); ++i) {
    lines.push_back(absl::StrSplit(all[i], absl::MaxSplits(": ", 1)));
  }
  return lines;
}

// The rows that an earlier run has not mapped yet.
class RemainingRows : public client::RowSource {
 public:
  RemainingRows(std::unique_ptr<client::RowSource> source, client::ExampleBlock first,
                int64_t skipped)
      : source_(std::move(source)), first_(std::move(first)), skipped_(skipped) {}

  int32_t columns() const override { return source_->columns(); }
  std::vector<std::string> column_names() const override { return source_->column_names(); }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override {
    if (!first_.empty()) return std::exchange(first_, client::ExampleBlock{});
    return source_->Next(limits);
  }
  std::optional<int64_t> row_count() const override {
    const std::optional<int64_t> all = source_->row_count();
    return all.has_value() ? std::optional(*all - skipped_) : std::nullopt;
  }
  std::optional<double> share_read() const override { return source_->share_read(); }
  void Interrupt() override { source_->Interrupt(); }

 private:
  const std::unique_ptr<client::RowSource> source_;
  client::ExampleBlock first_;
  const int64_t skipped_;
};

// Returns the origin of a transform, without its version. kInvalidArgument for an input that is not
// a file, because a pipe may deliver other rows the next time.
absl::StatusOr<TransformOrigin> OriginOf(const std::string& reference, const InputArguments& input,
                                         FileFormat output_format, bool residual) {
  TransformOrigin origin;
  const auto add = [&](const char* name, std::string value) {
    origin.asked.emplace_back(name, OnOneLine(std::move(value)));
  };
  add("of", reference);
  add("--output-format", output_format == FileFormat::kCsv ? "csv" : "npy");
  add("--residual", residual ? "yes" : "no");
  add("--format", input.format);
  add("--delimiter", input.delimiter);
  add("--label", input.choice.label);
  add("--exclude", absl::StrJoin(input.choice.exclude, ","));
  add("--passthrough", absl::StrJoin(input.choice.passthrough, ","));
  add("--text", input.text);
  add("--columns", absl::StrJoin(input.columns_given, ","));
  add("--by-name", input.choice.by_name ? "yes" : "no");
  add("--zero-based", input.zero_based ? "yes" : "no");
  for (const std::string& path : input.paths) {
    PHIMAP_ASSIGN_OR_RETURN(std::string file, DescribeFile(path));
    add("--input", std::move(file));
  }
  return origin;
}

absl::StatusOr<TransformProgress> TransformProgress::At(const std::string& output) {
  struct stat info;
  const bool special =
      output == "-" || (stat(output.c_str(), &info) == 0 && !S_ISREG(info.st_mode));
  if (special) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: the output must be a file, which keeps the finished rows, but ",
                     output, " is not a file"));
  }
  // Keeps a symbolic link and replaces its target.
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(output, error);
  const bool link = !error && std::filesystem::is_symlink(output, error);
  TransformProgress progress(link ? real.string() : output);
  const bool noted = std::filesystem::exists(progress.note_, error);
  PHIMAP_ASSIGN_OR_RETURN(progress.file_,
                          OutputFile::OpenPartial(progress.partial_, progress.output_, noted));
  return progress;
}

TransformProgress::TransformProgress(const std::string& output)
    : output_(output), partial_(output + ".partial"), note_(output + ".resume") {}

absl::StatusOr<std::optional<TransformOrigin>> TransformProgress::Earlier(
    const TransformOrigin& origin) const {
  std::ifstream file(note_, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto lines = LinesOf(text);
  const std::string anew = absl::StrCat("to start over, delete ", partial_, " and ", note_);
  const size_t size = lines.size();
  if (size < 2 || lines[size - 2].first != kVersion || lines[size - 1].first != kDigest) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: ", note_, " is not a record of a transform; ", anew));
  }
  TransformOrigin earlier;
  earlier.version = lines[size - 2].second;
  earlier.digest = lines[size - 1].second;
  lines.resize(size - 2);
  earlier.asked = std::move(lines);
  for (size_t i = 0; i < std::max(earlier.asked.size(), origin.asked.size()); ++i) {
    const std::pair<std::string, std::string> none = {"", "nothing"};
    const auto& before = i < earlier.asked.size() ? earlier.asked[i] : none;
    const auto& now = i < origin.asked.size() ? origin.asked[i] : none;
    if (before == now) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--resume: ", partial_, " was computed from other input\n  then: ", before.first, " ",
        before.second, "\n  now:  ", now.first, " ", now.second, "\n  ", anew));
  }
  return earlier;
}

absl::Status TransformProgress::Begin(const TransformOrigin& origin) {
  // Rows without a recorded origin cannot be continued.
  PHIMAP_RETURN_IF_ERROR(file_->CutOff(0));
  file_->Keep();
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> note, OutputFile::Open(note_));
  PHIMAP_RETURN_IF_ERROR(note->Append(TextOf(origin)));
  return note->Commit();
}

absl::StatusOr<TransformProgress::Opened> TransformProgress::Open(
    FileFormat format, std::optional<int64_t> row_count,
    std::shared_ptr<PassthroughCells> passthrough) {
  PHIMAP_ASSIGN_OR_RETURN(const WholeRows whole, FindWholeRows(partial_, format));
  // Writes the npy header again if no rows follow it yet.
  const bool started = whole.rows > 0 || format == FileFormat::kCsv;
  PHIMAP_RETURN_IF_ERROR(file_->CutOff(started ? whole.end : 0));
  if (format == FileFormat::kCsv) {
    return Opened{std::make_unique<CsvWriter>(std::move(file_), std::move(passthrough),
                                              /*started=*/whole.end > 0),
                  whole.rows};
  }
  if (started) {
    return Opened{NpyWriter::Continue(std::move(file_), row_count, whole.npy, whole.rows),
                  whole.rows};
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<RowWriter> writer,
                          NpyWriter::Open(std::move(file_), row_count));
  return Opened{std::move(writer), 0};
}

void TransformProgress::End() const { unlink(note_.c_str()); }

// Reads and drops the first `skipped` rows of `source`, and returns the rows after them; null if
// there are none. kInvalidArgument if `source` has fewer than `skipped` rows. `cancel` ends the
// reading.
absl::StatusOr<std::unique_ptr<client::RowSource>> RowsBehind(
    std::unique_ptr<client::RowSource> source, int64_t skipped, client::CancelToken& cancel) {
  const auto registration = cancel.OnCancel([rows = source.get()] { rows->Interrupt(); });
  constexpr int64_t kMostRows = client::BlockLimits{}.rows;
  for (int64_t done = 0; done < skipped;) {
    const auto rows = static_cast<int32_t>(std::min(skipped - done, kMostRows));
    PHIMAP_ASSIGN_OR_RETURN(const client::ExampleBlock block, source->Next({.rows = rows}));
    if (block.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--resume: the output already has the features of ", skipped,
                       " rows, but the input has only ", done));
    }
    done += block.rows();
  }
  // Reads one row ahead, so that no stream is opened if no rows remain.
  PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock first, source->Next({.rows = 1}));
  if (first.empty()) return nullptr;
  return std::make_unique<RemainingRows>(std::move(source), std::move(first), skipped);
}

struct TransformArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  InputArguments input;
  // "-" is standard output.
  std::string output;
  // "csv" or "npy". If empty, the extension of the output determines the format or, if it has none,
  // the format of the input does.
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

// Maps the rows of the input and writes their features. After a failure there is no output file;
// with `resume` the finished rows are kept (see TransformProgress). Before it reads a row,
// refuses an output that is the same file as the input, and an unknown extension. If the server is
// down, the stream is retried (see client.h).
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
