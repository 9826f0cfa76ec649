#include "client/cli/input_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/csv_reader.h"
#include "client/cli/input_file.h"
#include "client/cli/npy_reader.h"
#include "client/cli/svmlight_reader.h"
#include "client/cli/text_column_reader.h"
#include "client/cli/text_lines_reader.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

absl::Status CheckOptions(const InputArguments& input, FileFormat format) {
  if (format == FileFormat::kNpy && !input.label.empty()) {
    return absl::InvalidArgumentError(
        "--label names a column of a CSV file; the columns of npy have no names");
  }
  if (format == FileFormat::kSvmlight && !input.label.empty()) {
    return absl::InvalidArgumentError(
        "--label names a column of a CSV file; the label of svmlight is what its line begins with");
  }
  if (format == FileFormat::kText && !input.label.empty()) {
    return absl::InvalidArgumentError(
        "--label names a column of a CSV file; a file of texts has no labels");
  }
  if (format != FileFormat::kCsv && !input.text.empty()) {
    return absl::InvalidArgumentError(
        "--text names a column of a CSV file; of a file with a text on each line say "
        "--format=text");
  }
  if (format != FileFormat::kSvmlight && input.zero_based) {
    return absl::InvalidArgumentError("--zero-based is of svmlight files, which have indices");
  }
  return absl::OkStatus();
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
  return SvmlightReader::Open(std::move(file), {input.columns, input.zero_based}, cancel);
}

}  // namespace

absl::StatusOr<FileFormat> FormatOf(const InputArguments& input) {
  return FormatOf(input.path, input.format, "--format");
}

absl::StatusOr<InputArguments> WithColumnsOf(InputArguments input, client::Client& client,
                                             absl::string_view reference) {
  PHIMAP_ASSIGN_OR_RETURN(const FileFormat format, FormatOf(input));
  if (format != FileFormat::kSvmlight || input.columns != 0) return input;
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, client.GetVersion(reference));
  input.columns = version.input_columns();
  if (input.columns != 0) return input;
  return absl::InvalidArgumentError(
      absl::StrCat("version ", version.ref().number(), " of \"", version.ref().mapping(),
                   "\" does not map rows of numbers, which are what svmlight files hold"));
}

absl::StatusOr<std::unique_ptr<client::RowSource>> OpenRows(const InputArguments& input,
                                                            client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(OpenedInput opened, OpenFile(input));
  switch (opened.format) {
    case FileFormat::kCsv:
      if (!input.text.empty()) {
        return TextColumnReader::Open(std::move(opened.file), input.text, input.label);
      }
      return CsvReader::Open(std::move(opened.file), input.label);
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
  if (input.label.empty()) {
    return absl::InvalidArgumentError("--label is required of a CSV file: the column of labels");
  }
  if (!input.text.empty()) {
    return TextColumnReader::Open(std::move(opened.file), input.text, input.label);
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<CsvReader> reader,
                          CsvReader::Open(std::move(opened.file), input.label));
  reader->KeepLabels();
  return reader;
}

}  // namespace phimap::cli
