#include "client/cli/arguments/input_rows.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cpp/row_source.h"
#include "client/files/csv_reader.h"
#include "client/files/input_file.h"
#include "client/files/npy_file.h"
#include "client/files/output_file.h"
#include "client/files/svmlight_reader.h"
#include "client/files/text_reader.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

const char* TypeName(client::FloatType type) {
  return type == client::FloatType::kFloat32 ? "float32" : "float64";
}

absl::Status DoesNotFit(const std::string& path, const std::string& first, absl::string_view what,
                        const std::string& actual, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("the files of one stream must have the same ",
                                                 what, "\n  ", first, " has ", expected, "\n  ",
                                                 path, " has ", actual));
}

// A reader of one file.
struct OpenedRows {
  std::unique_ptr<client::RowSource> rows;
  // `rows` itself if it has labels; otherwise null.
  client::LabeledRowSource* labels = nullptr;
  // Names of all columns of CSV; other formats have none.
  std::vector<std::string> header = {};
  // Type of the rows of npy; other formats have none.
  std::optional<client::FloatType> type = {};
  // Columns of CSV that are not inputs because the version has none of that name.
  std::vector<std::string> left_out = {};
};

using RowsOpener = std::function<absl::StatusOr<OpenedRows>(const std::string& path)>;

// The rows of several files, one file after the other; one file is open at a time. All files must
// agree with the first one in the header of CSV, the number of columns, and the type of npy. Error
// messages show the values of both files.
//
// Thread-safety: as RowSource.
class RowSequence : public client::LabeledRowSource {
 public:
  // Opens each regular file once, so that a file that does not fit is an error before any row is
  // read. Pipes are checked when they are reached. REQUIRES: at least one path.
  static absl::StatusOr<std::unique_ptr<RowSequence>> Open(std::vector<std::string> paths,
                                                           RowsOpener opener) {
    std::unique_ptr<RowSequence> sequence(new RowSequence(std::move(paths), std::move(opener)));
    PHIMAP_RETURN_IF_ERROR(sequence->LookAtAll());
    if (sequence->current_.rows == nullptr) PHIMAP_RETURN_IF_ERROR(sequence->OpenNext());
    return sequence;
  }

  int32_t columns() const override { return columns_; }
  std::vector<std::string> column_names() const override { return column_names_; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override {
    while (next_ < paths_.size()) {
      if (current_.rows == nullptr) PHIMAP_RETURN_IF_ERROR(OpenNext());
      PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock block, current_.rows->Next(limits));
      if (block.empty()) CloseCurrent();
      NoteShare();
      if (!block.empty()) return block;
    }
    return client::ExampleBlock{};
  }

  std::optional<int64_t> row_count() const override { return row_count_; }
  std::optional<double> share_read() const override {
    if (sizes_.empty() || total_size_ == 0) return std::nullopt;
    return share_.load();
  }

  bool CanRewind() const override { return regular_; }
  absl::Status Rewind() override {
    if (!regular_) return absl::UnimplementedError("one of the files can be read only once");
    labels_.clear();
    next_ = 0;
    done_size_ = 0;
    share_ = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      interrupted_ = false;
      current_ = OpenedRows{};
    }
    return OpenNext();
  }

  void Interrupt() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    if (current_.rows != nullptr) current_.rows->Interrupt();
  }

  std::vector<std::string> TakeLabels() override {
    std::vector<std::string> labels = std::exchange(labels_, {});
    if (current_.labels == nullptr) return labels;
    std::vector<std::string> more = current_.labels->TakeLabels();
    std::move(more.begin(), more.end(), std::back_inserter(labels));
    return labels;
  }

  // A block is of one file, and a file is closed only after its last block was taken.
  client::RowFacts TakeFacts() override {
    return current_.labels == nullptr ? client::RowFacts() : current_.labels->TakeFacts();
  }

  // Names of all columns of the first file.
  const std::vector<std::string>& header() const { return header_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  RowSequence(std::vector<std::string> paths, RowsOpener opener)
      : paths_(std::move(paths)), opener_(std::move(opener)) {}

  absl::Status LookAtAll() {
    std::optional<int64_t> rows = 0;
    for (size_t i = 0; i < paths_.size(); ++i) {
      std::error_code error;
      if (paths_[i] == "-" || !std::filesystem::is_regular_file(paths_[i], error)) {
        regular_ = false;
        // A pipe can be opened only once. If it comes first, it is opened here, because it
        // determines the properties of the other files.
        if (i == 0) PHIMAP_RETURN_IF_ERROR(OpenNext());
        continue;
      }
      const int64_t size = static_cast<int64_t>(std::filesystem::file_size(paths_[i], error));
      sizes_.push_back(size);
      total_size_ += size;
      PHIMAP_ASSIGN_OR_RETURN(const OpenedRows opened, opener_(paths_[i]));
      PHIMAP_RETURN_IF_ERROR(CheckFits(opened, paths_[i]));
      const std::optional<int64_t> count = opened.rows->row_count();
      rows = rows.has_value() && count.has_value() ? std::optional(*rows + *count) : std::nullopt;
    }
    if (regular_) {
      row_count_ = rows;
    } else {
      sizes_.clear();
    }
    return absl::OkStatus();
  }

  // Opens the file `next_`.
  absl::Status OpenNext() {
    PHIMAP_ASSIGN_OR_RETURN(OpenedRows opened, opener_(paths_[next_]));
    PHIMAP_RETURN_IF_ERROR(CheckFits(opened, paths_[next_]));
    const std::lock_guard<std::mutex> lock(mutex_);
    current_ = std::move(opened);
    if (interrupted_) current_.rows->Interrupt();
    return absl::OkStatus();
  }

  // Compares a file with the first one. For the first file, records its properties.
  absl::Status CheckFits(const OpenedRows& opened, const std::string& path) {
    if (!std::exchange(known_, true)) {
      columns_ = opened.rows->columns();
      header_ = opened.header;
      column_names_ = opened.rows->column_names();
      left_out_ = opened.left_out;
      type_ = opened.type;
      return absl::OkStatus();
    }
    if (opened.header != header_) {
      return DoesNotFit(path, paths_[0], "header", absl::StrJoin(opened.header, ","),
                        absl::StrJoin(header_, ","));
    }
    if (opened.rows->columns() != columns_) {
      return DoesNotFit(path, paths_[0], "number of columns", absl::StrCat(opened.rows->columns()),
                        absl::StrCat(columns_));
    }
    if (opened.type.has_value() && opened.type != type_) {
      return DoesNotFit(path, paths_[0], "type after conversion to float32 or float64",
                        TypeName(*opened.type), TypeName(*type_));
    }
    return absl::OkStatus();
  }

  void CloseCurrent() {
    if (current_.labels != nullptr) {
      std::vector<std::string> labels = current_.labels->TakeLabels();
      std::move(labels.begin(), labels.end(), std::back_inserter(labels_));
    }
    if (!sizes_.empty()) done_size_ += sizes_[next_];
    ++next_;
    const std::lock_guard<std::mutex> lock(mutex_);
    current_ = OpenedRows{};
  }

  void NoteShare() {
    if (sizes_.empty() || total_size_ == 0) return;
    const double current = current_.rows == nullptr ? 0
                                                    : current_.rows->share_read().value_or(0) *
                                                          static_cast<double>(sizes_[next_]);
    share_ = (static_cast<double>(done_size_) + current) / static_cast<double>(total_size_);
  }

  const std::vector<std::string> paths_;
  const RowsOpener opener_;
  bool regular_ = true;
  // Whether a file was opened; the members below then describe the first one.
  bool known_ = false;
  int32_t columns_ = 0;
  std::vector<std::string> header_;
  std::vector<std::string> column_names_;
  std::vector<std::string> left_out_;
  std::optional<client::FloatType> type_;
  std::optional<int64_t> row_count_;

  // Sizes of the files; empty if one is a pipe.
  std::vector<int64_t> sizes_;
  int64_t total_size_ = 0;
  int64_t done_size_ = 0;
  std::atomic<double> share_ = 0;

  size_t next_ = 0;
  std::vector<std::string> labels_;
  // Held while current_ is replaced, and by Interrupt.
  std::mutex mutex_;
  OpenedRows current_;
  bool interrupted_ = false;
};

// Returns why columns of this format have no names.
absl::string_view NoNamesOf(FileFormat format) {
  switch (format) {
    case FileFormat::kNpy:
      return "the columns of npy have no names";
    case FileFormat::kSvmlight:
      return "the columns of svmlight have numbers instead of names, and each line begins with its "
             "label";
    case FileFormat::kText:
      return "a file of texts has neither columns nor labels";
    case FileFormat::kCsv:
      break;
  }
  return "";
}

absl::Status CheckNamingOptions(const InputArguments& input, FileFormat format) {
  if (format == FileFormat::kCsv) return absl::OkStatus();
  const std::pair<const char*, bool> options[] = {
      {"--label", !input.choice.label.empty()},
      {"--weights", !input.choice.weights.empty()},
      {"--groups", !input.choice.groups.empty()},
      {"--parts", !input.choice.parts.empty()},
      {"--exclude", !input.choice.exclude.empty()},
      {"--passthrough", !input.choice.passthrough.empty()},
      {"--columns", !input.columns_given.empty() && format != FileFormat::kSvmlight}};
  for (const auto& [option, given] : options) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " names a column of a CSV file; ", NoNamesOf(format)));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const InputArguments& input, FileFormat format) {
  PHIMAP_RETURN_IF_ERROR(CheckNamingOptions(input, format));
  if (format != FileFormat::kCsv && !input.text.empty()) {
    return absl::InvalidArgumentError(
        "--text names a column of a CSV file; use --format=text for a file with one text per line");
  }
  const bool known =
      !input.choice.weights.empty() || !input.choice.groups.empty() || !input.choice.parts.empty();
  if (!input.text.empty() && known) {
    return absl::InvalidArgumentError(
        "--weights, --groups and --parts are for rows of numbers; with --text, every row counts "
        "alike");
  }
  const bool chosen = !input.choice.passthrough.empty() || !input.choice.exclude.empty() ||
                      !input.columns_given.empty();
  if (!input.text.empty() && chosen) {
    return absl::InvalidArgumentError(
        "--text names the column of the examples; --columns, --exclude and --passthrough are for "
        "rows of numbers only");
  }
  if (format != FileFormat::kCsv && !input.delimiter.empty()) {
    return absl::InvalidArgumentError("--delimiter is for CSV files only");
  }
  if (format != FileFormat::kSvmlight && input.zero_based) {
    return absl::InvalidArgumentError("--zero-based is for svmlight files only");
  }
  return absl::OkStatus();
}

ColumnChoice ChoiceOf(const InputArguments& input) {
  ColumnChoice choice = input.choice;
  choice.columns = input.columns_given;
  return choice;
}

absl::StatusOr<char> DelimiterOf(const InputArguments& input, const std::string& path) {
  const std::string& named = input.delimiter;
  if (named.empty()) {
    return absl::EndsWithIgnoreCase(WithoutCompression(path), ".tsv") ? '\t' : ',';
  }
  if (named == "tab" || named == "\\t") return '\t';
  const bool usable = named.size() == 1 && !absl::ascii_isalnum(named[0]) &&
                      absl::ascii_isascii(named[0]) &&
                      absl::string_view("\"\r\n.+-").find(named[0]) == absl::string_view::npos;
  if (usable) return named[0];
  return absl::InvalidArgumentError(
      absl::StrCat("--delimiter: expected tab or one character that cannot be part of a number, "
                   "such as ';' or '|'; got '",
                   named, "'"));
}

absl::StatusOr<OpenedRows> OpenCsv(std::unique_ptr<InputFile> file, const std::string& path,
                                   const InputArguments& input, bool keep_labels) {
  PHIMAP_ASSIGN_OR_RETURN(const char delimiter, DelimiterOf(input, path));
  if (!input.text.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(
        std::unique_ptr<TextColumnReader> reader,
        TextColumnReader::Open(std::move(file), input.text, input.choice.label, delimiter));
    TextColumnReader* const labels = reader.get();
    return OpenedRows{std::move(reader), labels, labels->header()};
  }
  PHIMAP_ASSIGN_OR_RETURN(
      std::unique_ptr<CsvReader> reader,
      CsvReader::Open(std::move(file), ChoiceOf(input), delimiter, input.passthrough));
  if (keep_labels) reader->KeepLabels();
  CsvReader* const labels = reader.get();
  std::vector<std::string> left_out = labels->left_out();
  return OpenedRows{std::move(reader), labels, labels->header(), {}, std::move(left_out)};
}

// Returns the number of columns of svmlight rows: from the command line, else from the version,
// else 0.
absl::StatusOr<int32_t> ColumnsOfRows(const InputArguments& input) {
  if (input.columns_given.empty()) return input.columns;
  return CountOfColumns(input.columns_given);
}

absl::StatusOr<OpenedRows> OpenSvmlight(std::unique_ptr<InputFile> file,
                                        const InputArguments& input, bool keep_labels,
                                        client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const int32_t columns, ColumnsOfRows(input));
  PHIMAP_ASSIGN_OR_RETURN(
      std::unique_ptr<SvmlightReader> reader,
      SvmlightReader::Open(std::move(file), {columns, input.zero_based}, cancel));
  if (keep_labels) reader->KeepLabels();
  SvmlightReader* const labels = reader.get();
  return OpenedRows{std::move(reader), labels};
}

absl::StatusOr<OpenedRows> OpenFile(const InputArguments& input, FileFormat format,
                                    const std::string& path, bool keep_labels,
                                    client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
  switch (format) {
    case FileFormat::kCsv:
      return OpenCsv(std::move(file), path, input, keep_labels);
    case FileFormat::kNpy: {
      PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<NpyReader> reader, NpyReader::Open(std::move(file)));
      const client::FloatType type = reader->type();
      return OpenedRows{std::move(reader), nullptr, {}, type};
    }
    case FileFormat::kText:
      return OpenedRows{std::make_unique<TextLinesReader>(std::move(file))};
    case FileFormat::kSvmlight:
      break;
  }
  return OpenSvmlight(std::move(file), input, keep_labels, cancel);
}

// Reads all files and returns the largest number of columns in any of them.
absl::StatusOr<int32_t> ColumnsOfAll(const InputArguments& input, client::CancelToken& cancel) {
  int32_t columns = 0;
  for (const std::string& path : input.paths) {
    PHIMAP_ASSIGN_OR_RETURN(const OpenedRows opened, OpenFile(input, FileFormat::kSvmlight, path,
                                                              /*keep_labels=*/false, cancel));
    columns = std::max(columns, opened.rows->columns());
  }
  return columns;
}

absl::StatusOr<std::unique_ptr<RowSequence>> OpenAll(InputArguments input, FileFormat format,
                                                     bool keep_labels,
                                                     client::CancelToken& cancel) {
  if (format == FileFormat::kSvmlight && input.columns == 0 && input.columns_given.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(input.columns, ColumnsOfAll(input, cancel));
  }
  std::vector<std::string> paths = input.paths;
  return RowSequence::Open(std::move(paths), [input = std::move(input), format, keep_labels,
                                              &cancel](const std::string& path) {
    return OpenFile(input, format, path, keep_labels, cancel);
  });
}

absl::Status CheckHasLabels(const InputArguments& input, FileFormat format) {
  if (format == FileFormat::kNpy) {
    return absl::InvalidArgumentError(
        "--input: expected a CSV file with a column of labels, or an svmlight file; the columns of "
        "npy have no names");
  }
  if (format == FileFormat::kText) {
    return absl::InvalidArgumentError(
        "--input: a file of texts has no labels; expected a CSV file with a column of texts and "
        "one of labels: --text=COLUMN --label=COLUMN");
  }
  if (format == FileFormat::kCsv && input.choice.label.empty()) {
    return absl::InvalidArgumentError("--label is required for a CSV file: the column of labels");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InputArguments> WithFiles(InputArguments input) {
  input.paths.insert(input.paths.end(), input.more_paths.begin(), input.more_paths.end());
  input.more_paths.clear();
  if (input.paths.empty()) {
    return absl::InvalidArgumentError("--input is required: one or more files of rows");
  }
  PHIMAP_ASSIGN_OR_RETURN(input.paths, FilesNamed(input.paths));
  return input;
}

absl::StatusOr<FileFormat> FormatOf(const InputArguments& input) {
  std::optional<FileFormat> format;
  for (const std::string& path : input.paths) {
    const absl::string_view name = WithoutCompression(path);
    const bool tabs = input.format.empty() && absl::EndsWithIgnoreCase(name, ".tsv");
    PHIMAP_ASSIGN_OR_RETURN(const FileFormat its,
                            tabs ? FileFormat::kCsv : FormatOf(name, input.format, "--format"));
    if (format.has_value() && *format != its) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--input: the files of one stream must have the same format, but the names of ",
          input.paths[0], " and ", path,
          " suggest two formats; if they have the same one, give it with --format"));
    }
    format = its;
  }
  return *format;
}

absl::Status RefuseOverwritingInput(const InputArguments& input, const std::string& output) {
  for (const std::string& path : input.paths) {
    PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(path, output));
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> CountOfColumns(const std::vector<std::string>& given) {
  constexpr int32_t kMaxColumns = 65'536;  // The API's limit.
  int32_t count = 0;
  if (given.size() == 1 && absl::SimpleAtoi(given[0], &count) && count >= 1 &&
      count <= kMaxColumns) {
    return count;
  }
  return absl::InvalidArgumentError(absl::StrCat("--columns: expected a number of columns, 1 to ",
                                                 kMaxColumns, ", got ",
                                                 Quoted(absl::StrJoin(given, ","))));
}

absl::StatusOr<InputArguments> WithColumnsOf(InputArguments input, client::RowCalls& maps,
                                             absl::string_view reference, std::ostream& notes) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format, FormatOf(input));
  PHIMAP_RETURN_IF_ERROR(CheckOptions(input, format));
  input.choice.reference = std::string(reference);
  const bool is_needed = format == FileFormat::kSvmlight;
  const absl::StatusOr<v1::Version> found = maps.GetVersion(reference, /*wait=*/is_needed);
  if (absl::IsUnavailable(found.status()) && !is_needed) {
    // A server without its database may still map rows. It refuses columns with other names.
    notes << "note: the server cannot say now which columns " << reference
          << " has; all columns of the input are sent, and the server compares their names"
          << std::endl;
    return input;
  }
  PHIMAP_RETURN_IF_ERROR(found.status());
  const v1::Version& version = *found;
  if (is_needed) {
    input.columns = version.input_columns();
    if (input.columns == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("version ", version.ref().number(), " of \"", version.ref().name(),
                       "\" does not map rows of numbers, which is what an svmlight file contains"));
    }
  }
  if (format == FileFormat::kCsv) {
    input.choice.of_version.assign(version.column_names().begin(), version.column_names().end());
  } else if (version.column_names_size() > 0) {
    notes << "note: " << NoNamesOf(format) << "; phimap cannot check that the columns are those of "
          << reference << ", in the same order" << std::endl;
  }
  return input;
}

void NoteColumnsLeftOut(const client::RowSource& rows, std::ostream& notes) {
  std::vector<std::string> names;
  if (const auto* const file = dynamic_cast<const CsvReader*>(&rows)) names = file->left_out();
  if (const auto* const files = dynamic_cast<const RowSequence*>(&rows)) names = files->left_out();
  if (names.empty()) return;
  notes
      << "note: got " << CountOf(rows.column_names().size() + names.size(), "column") << "; "
      << ShownColumnNames(names) << (names.size() == 1 ? " is" : " are")
      << " not among the version's columns and left out (--passthrough=NAME copies a column to the "
         "output, --exclude=NAME silences this message)"
      << std::endl;
}

absl::StatusOr<std::unique_ptr<client::RowSource>> OpenRows(const InputArguments& input,
                                                            client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format, FormatOf(input));
  PHIMAP_RETURN_IF_ERROR(CheckOptions(input, format));
  if (input.paths.size() > 1) return OpenAll(input, format, /*keep_labels=*/false, cancel);
  PHIMAP_ASSIGN_OR_RETURN(OpenedRows opened, OpenFile(input, format, input.paths[0],
                                                      /*keep_labels=*/false, cancel));
  return std::move(opened.rows);
}

absl::StatusOr<std::unique_ptr<client::LabeledRowSource>> OpenLabeledRows(
    const InputArguments& input, client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format, FormatOf(input));
  PHIMAP_RETURN_IF_ERROR(CheckHasLabels(input, format));
  PHIMAP_RETURN_IF_ERROR(CheckOptions(input, format));
  return OpenAll(input, format, /*keep_labels=*/true, cancel);
}

}  // namespace phimap::cli
