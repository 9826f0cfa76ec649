#include "client/cli/commands/resumable_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/files/copy_writer.h"
#include "client/files/csv_writer.h"
#include "client/files/input_file.h"
#include "client/files/npy_file.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

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

// Counts the line ends. Each completes the header, if there is one, or a row, because features and
// predictions contain none: names of classes may not (training.cc), and cells that are passed
// through may not (csv_reader.cc).
absl::StatusOr<WholeRows> FindWholeLines(InputFile& file, bool has_header) {
  WholeRows whole{.rows = has_header ? -1 : 0};
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

// Counts the whole rows of a file that was begun by the writer of `format`. kInvalidArgument for
// any other file. Reads all of a file of lines, but only the header of npy.
absl::StatusOr<WholeRows> FindWholeRows(const std::string& path, OutputFormat format) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
  if (format != OutputFormat::kNpy) {
    return FindWholeLines(*file, /*has_header=*/format == OutputFormat::kCsv);
  }
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

// First line of OUTPUT.resume.
std::string FirstLine(const std::string& command) { return absl::StrCat("phimap-", command, "-1"); }

std::string TextOf(const RowsOrigin& origin) {
  std::string text = absl::StrCat(FirstLine(origin.command), "\n");
  for (const auto& [name, value] : origin.asked) absl::StrAppend(&text, name, ": ", value, "\n");
  absl::StrAppend(&text, kVersion, ": ", origin.version, "\n", kDigest, ": ", origin.digest, "\n");
  return text;
}

// Returns the lines after the first, split into names and values; empty if the text has another
// format.
std::vector<std::pair<std::string, std::string>> LinesOf(const std::string& text,
                                                         const std::string& command) {
  std::vector<std::pair<std::string, std::string>> lines;
  const std::vector<std::string> all = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (all.empty() || all[0] != FirstLine(command)) return lines;
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

}  // namespace

absl::StatusOr<RowsOrigin> OriginOf(
    const std::string& command, const std::string& reference, const InputArguments& input,
    const std::vector<std::pair<std::string, std::string>>& options) {
  RowsOrigin origin{.command = command, .asked = {}, .version = {}, .digest = {}};
  const auto add = [&](const std::string& name, std::string value) {
    origin.asked.emplace_back(name, OnOneLine(std::move(value)));
  };
  add("of", reference);
  for (const auto& [name, value] : options) add(name, value);
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

absl::StatusOr<OutputProgress> OutputProgress::At(const std::string& output) {
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
  OutputProgress progress(link ? real.string() : output);
  const bool noted = std::filesystem::exists(progress.note_, error);
  PHIMAP_ASSIGN_OR_RETURN(progress.file_,
                          OutputFile::OpenPartial(progress.partial_, progress.output_, noted));
  return progress;
}

OutputProgress::OutputProgress(const std::string& output)
    : output_(output), partial_(output + ".partial"), note_(output + ".resume") {}

absl::StatusOr<std::optional<RowsOrigin>> OutputProgress::Earlier(const RowsOrigin& origin) const {
  std::ifstream file(note_, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto lines = LinesOf(text, origin.command);
  const std::string anew = absl::StrCat("to start over, delete ", partial_, " and ", note_);
  const size_t size = lines.size();
  if (size < 2 || lines[size - 2].first != kVersion || lines[size - 1].first != kDigest) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume: ", note_, " is not a record of a ", origin.command, "; ", anew));
  }
  RowsOrigin earlier{.command = origin.command, .asked = {}, .version = {}, .digest = {}};
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

absl::Status OutputProgress::Begin(const RowsOrigin& origin) {
  // Rows without a recorded origin cannot be continued.
  PHIMAP_RETURN_IF_ERROR(file_->CutOff(0));
  file_->Keep();
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> note, OutputFile::Open(note_));
  PHIMAP_RETURN_IF_ERROR(note->Append(TextOf(origin)));
  return note->Commit();
}

absl::StatusOr<OutputProgress::Opened> OutputProgress::Open(
    OutputFormat format, std::optional<int64_t> row_count,
    std::shared_ptr<PassthroughCells> passthrough) {
  PHIMAP_ASSIGN_OR_RETURN(const WholeRows whole, FindWholeRows(partial_, format));
  // Writes the npy header again if no rows follow it yet.
  const bool started = whole.rows > 0 || format != OutputFormat::kNpy;
  PHIMAP_RETURN_IF_ERROR(file_->CutOff(started ? whole.end : 0));
  if (format == OutputFormat::kCopy) {
    return Opened{std::make_unique<CopyWriter>(std::move(file_), std::move(passthrough)),
                  whole.rows};
  }
  if (format == OutputFormat::kCsv) {
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

absl::StatusOr<OutputProgress::OpenedLines> OutputProgress::OpenLines() {
  PHIMAP_ASSIGN_OR_RETURN(const WholeRows whole, FindWholeRows(partial_, OutputFormat::kCsv));
  PHIMAP_RETURN_IF_ERROR(file_->CutOff(whole.end));
  return OpenedLines{std::move(file_), whole.rows, whole.end > 0};
}

void OutputProgress::End() const { unlink(note_.c_str()); }

absl::StatusOr<std::unique_ptr<client::RowSource>> RowsBehind(
    std::unique_ptr<client::RowSource> source, int64_t skipped, client::CancelToken& cancel) {
  const auto registration = cancel.OnCancel([rows = source.get()] { rows->Interrupt(); });
  constexpr int64_t kMostRows = client::BlockLimits{}.rows;
  for (int64_t done = 0; done < skipped;) {
    const auto rows = static_cast<int32_t>(std::min(skipped - done, kMostRows));
    PHIMAP_ASSIGN_OR_RETURN(const client::ExampleBlock block, source->Next({.rows = rows}));
    if (block.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--resume: the output already has ",
                                                     CountOf(skipped, "row"),
                                                     ", but the input has only ", done));
    }
    done += block.rows();
  }
  // Reads one row ahead, so that no stream is opened if no rows remain.
  PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock first, source->Next({.rows = 1}));
  if (first.empty()) return nullptr;
  return std::make_unique<RemainingRows>(std::move(source), std::move(first), skipped);
}

absl::StatusOr<Resumed> Resume(const std::string& output, const std::string& reference,
                               RowsOrigin origin, client::RowCalls& maps) {
  PHIMAP_ASSIGN_OR_RETURN(OutputProgress progress, OutputProgress::At(output));
  PHIMAP_ASSIGN_OR_RETURN(std::optional<RowsOrigin> earlier, progress.Earlier(origin));
  if (earlier.has_value()) {
    return Resumed{std::move(progress), *std::move(earlier), /*earlier=*/true};
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, maps.GetVersion(reference));
  origin.version = client::ReferenceTo(version.ref());
  origin.digest = version.ref().digest();
  return Resumed{std::move(progress), std::move(origin)};
}

}  // namespace phimap::cli
