#include "client/cli/input_rows.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/csv_reader.h"
#include "client/cli/input_file.h"
#include "client/cli/npy_reader.h"
#include "client/cli/svmlight_reader.h"
#include "client/cli/text_column_reader.h"
#include "client/cli/text_lines_reader.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "exchange/named_columns.h"

namespace phimap::cli {
namespace {

// Why a format has no columns that could be named.
absl::string_view NoNamesOf(FileFormat format) {
  switch (format) {
    case FileFormat::kNpy:
      return "the columns of npy have no names";
    case FileFormat::kSvmlight:
      return "those of svmlight have numbers; its labels are what its lines begin with";
    case FileFormat::kText:
      return "a file of texts has neither columns nor labels";
    case FileFormat::kCsv:
      break;
  }
  return "";
}

absl::Status CheckOptions(const InputArguments& input, FileFormat format) {
  const std::pair<const char*, bool> of_names[] = {
      {"--label", !input.choice.label.empty()},
      {"--exclude", !input.choice.exclude.empty()},
      {"--passthrough", !input.choice.passthrough.empty()},
      {"--columns", !input.columns_given.empty() && format != FileFormat::kSvmlight}};
  for (const auto& [option, given] : of_names) {
    if (!given || format == FileFormat::kCsv) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " names a column of a CSV file; ", NoNamesOf(format)));
  }
  if (format != FileFormat::kCsv && !input.text.empty()) {
    return absl::InvalidArgumentError(
        "--text names a column of a CSV file; of a file with a text on each line say "
        "--format=text");
  }
  const bool chosen = !input.choice.passthrough.empty() || !input.choice.exclude.empty() ||
                      !input.columns_given.empty();
  if (!input.text.empty() && chosen) {
    return absl::InvalidArgumentError(
        "--text takes one column for the examples; --columns, --exclude and --passthrough are of "
        "rows of numbers");
  }
  if (format != FileFormat::kSvmlight && input.zero_based) {
    return absl::InvalidArgumentError("--zero-based is of svmlight files, which have indices");
  }
  return absl::OkStatus();
}

ColumnChoice ChoiceOf(const InputArguments& input) {
  ColumnChoice choice = input.choice;
  choice.columns = input.columns_given;
  return choice;
}

struct OpenedInput {
  FileFormat format;
  std::unique_ptr<InputFile> file;
};

absl::StatusOr<OpenedInput> OpenFile(const InputArguments& input) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format, FormatOf(input));
  PHIMAP_RETURN_IF_ERROR(CheckOptions(input, format));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(input.path));
  return OpenedInput{format, std::move(file)};
}

absl::StatusOr<std::unique_ptr<SvmlightReader>> OpenSvmlight(std::unique_ptr<InputFile> file,
                                                             const InputArguments& input,
                                                             client::CancelToken& cancel) {
  int32_t columns = input.columns;
  if (!input.columns_given.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(columns, CountOfColumns(input.columns_given));
  }
  return SvmlightReader::Open(std::move(file), {columns, input.zero_based}, cancel);
}

// Of a version whose columns have no names, more of the file than it maps.
absl::Status CheckCount(const InputArguments& input, const CsvReader& rows) {
  if (!input.choice.of_version.empty() || input.columns == 0) return absl::OkStatus();
  if (rows.columns() <= input.columns) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(input.path, ": ", rows.columns(), " columns came, and ", input.choice.reference,
                   " maps ", input.columns,
                   ", which have no names; leave out what is no input, as a label or an id, with "
                   "--exclude=NAME, or carry it along with --passthrough=NAME. The columns are ",
                   ShownColumnNames(rows.column_names())));
}

absl::StatusOr<std::unique_ptr<CsvReader>> OpenCsv(std::unique_ptr<InputFile> file,
                                                   const InputArguments& input) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<CsvReader> rows,
                          CsvReader::Open(std::move(file), ChoiceOf(input), input.passthrough));
  PHIMAP_RETURN_IF_ERROR(CheckCount(input, *rows));
  return rows;
}

}  // namespace

absl::StatusOr<FileFormat> FormatOf(const InputArguments& input) {
  return FormatOf(input.path, input.format, "--format");
}

absl::StatusOr<int32_t> CountOfColumns(const std::vector<std::string>& given) {
  constexpr int32_t kMaxColumns = 65'536;  // The API's limit.
  int32_t count = 0;
  if (given.size() == 1 && absl::SimpleAtoi(given[0], &count) && count >= 1 &&
      count <= kMaxColumns) {
    return count;
  }
  return absl::InvalidArgumentError(absl::StrCat("--columns: expected how many there are, 1 to ",
                                                 kMaxColumns, ", got ",
                                                 Quoted(absl::StrJoin(given, ","))));
}

absl::StatusOr<InputArguments> WithColumnsOf(InputArguments input, client::Client& client,
                                             absl::string_view reference, std::ostream& notes) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format, FormatOf(input));
  PHIMAP_RETURN_IF_ERROR(CheckOptions(input, format));
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, client.GetVersion(reference));
  input.choice.reference = std::string(reference);
  input.columns = version.input_columns();
  if (format == FileFormat::kSvmlight && input.columns == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("version ", version.ref().number(), " of \"", version.ref().mapping(),
                     "\" does not map rows of numbers, which are what svmlight files hold"));
  }
  // Rows of kernel values may have K(x, x) as one column more.
  if (absl::StartsWith(version.kernel_text(), "precomputed(")) input.columns = 0;
  if (format == FileFormat::kCsv) {
    input.choice.of_version.assign(version.column_names().begin(), version.column_names().end());
  } else if (version.column_names_size() > 0) {
    notes << "note: " << NoNamesOf(format) << ", so it is not checked that they are those of "
          << reference << ", in its order" << std::endl;
  }
  return input;
}

void NoteColumnsLeftOut(const client::RowSource& rows, std::ostream& notes) {
  const auto* const csv = dynamic_cast<const CsvReader*>(&rows);
  if (csv == nullptr || csv->left_out().empty()) return;
  const std::vector<std::string> names = csv->left_out();
  notes << "note: " << names.size() + csv->column_names().size() << " columns came; "
        << ShownColumnNames(names) << (names.size() == 1 ? " is" : " are")
        << " not among the version's and left out (--passthrough=NAME carries a column along, "
           "--exclude=NAME says that this is meant)"
        << std::endl;
}

absl::StatusOr<std::unique_ptr<client::RowSource>> OpenRows(const InputArguments& input,
                                                            client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(OpenedInput opened, OpenFile(input));
  switch (opened.format) {
    case FileFormat::kCsv:
      if (!input.text.empty()) {
        return TextColumnReader::Open(std::move(opened.file), input.text, input.choice.label);
      }
      return OpenCsv(std::move(opened.file), input);
    case FileFormat::kNpy:
      return NpyReader::Open(std::move(opened.file));
    case FileFormat::kText:
      return std::make_unique<TextLinesReader>(std::move(opened.file));
    case FileFormat::kSvmlight:
      break;
  }
  return OpenSvmlight(std::move(opened.file), input, cancel);
}

absl::StatusOr<std::unique_ptr<client::LabeledRowSource>> OpenLabeledRows(
    const InputArguments& input, client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(OpenedInput opened, OpenFile(input));
  if (opened.format == FileFormat::kSvmlight) {
    PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SvmlightReader> reader,
                            OpenSvmlight(std::move(opened.file), input, cancel));
    reader->KeepLabels();
    return reader;
  }
  if (opened.format == FileFormat::kNpy) {
    return absl::InvalidArgumentError(
        "--input: expected a CSV file, which has a column of labels, or svmlight; the columns of "
        "npy have no names");
  }
  if (opened.format == FileFormat::kText) {
    return absl::InvalidArgumentError(
        "--input: a file of texts has no labels; expected a CSV file with a column of texts and "
        "one "
        "of labels: --text=COLUMN --label=COLUMN");
  }
  if (input.choice.label.empty()) {
    return absl::InvalidArgumentError("--label is required of a CSV file: the column of labels");
  }
  if (!input.text.empty()) {
    return TextColumnReader::Open(std::move(opened.file), input.text, input.choice.label);
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<CsvReader> reader,
                          OpenCsv(std::move(opened.file), input));
  reader->KeepLabels();
  return reader;
}

}  // namespace phimap::cli
