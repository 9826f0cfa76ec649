// The rows that a command reads: options and a reader.
#ifndef PHIMAP_CLIENT_CLI_ARGUMENTS_INPUT_ROWS_H_
#define PHIMAP_CLIENT_CLI_ARGUMENTS_INPUT_ROWS_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/row_source.h"
#include "client/files/column_choice.h"
#include "client/files/file_format.h"

namespace phimap::cli {

struct InputArguments {
  // Paths and patterns; "-" is standard input. Several files are one stream.
  std::vector<std::string> paths;
  // Paths and patterns that were given without --input; WithFiles appends them to `paths`.
  std::vector<std::string> more_paths;
  // "csv", "npy", "svmlight" or "text"; if empty, the file's extension determines the format.
  std::string format;
  // Delimiter of CSV cells: one character, or "tab". If empty, a comma, or a tab in files named
  // .tsv.
  std::string delimiter;
  // Roles of the columns of CSV. `choice.columns` is filled in from columns_given.
  ColumnChoice choice = {};
  // --columns as given: for csv the names of the inputs, for svmlight their number.
  std::vector<std::string> columns_given = {};
  // Name of the CSV column that has the examples as text; empty for rows of numbers.
  std::string text;
  // Number of columns of svmlight rows, unless columns_given states it. 0 means that it is read
  // from the file.
  int32_t columns = 0;
  // Whether svmlight's first index is 0.
  bool zero_based = false;
  // Destination of the cells of `choice.passthrough`; null if there are none.
  std::shared_ptr<PassthroughCells> passthrough = nullptr;
};

// Returns `input` with `paths` set to all files that were given, with patterns expanded.
// kInvalidArgument if no file is given, or if none matches a pattern.
absl::StatusOr<InputArguments> WithFiles(InputArguments input);

// Returns the common format of all input files; kInvalidArgument if they differ. REQUIRES: `input`
// was returned by WithFiles.
absl::StatusOr<FileFormat> FormatOf(const InputArguments& input);

// kInvalidArgument, with the message of RefuseOverwritingInput, if `output` is one of the input
// files.
absl::Status RefuseOverwritingInput(const InputArguments& input, const std::string& output);

// Parses `given` as a number of columns, 1..65536; kInvalidArgument for anything else.
absl::StatusOr<int32_t> CountOfColumns(const std::vector<std::string>& given);

// Adds what the version states about its columns: their number, for formats that do not state it,
// and their names, for CSV. If the names cannot be compared with those of the input, says so in
// `notes`, which people read.
absl::StatusOr<InputArguments> WithColumnsOf(InputArguments input, client::RowCalls& maps,
                                             absl::string_view reference, std::ostream& notes);

// Lists in `notes` the columns that are left out although no option says so. REQUIRES: `rows` was
// opened by OpenRows or OpenLabeledRows.
void NoteColumnsLeftOut(const client::RowSource& rows, std::ostream& notes);

// Returns a reader of all files, in order. `cancel` ends the reading. Errors: kInvalidArgument for
// options that do not apply to the format. REQUIRES: `input` was returned by WithFiles.
absl::StatusOr<std::unique_ptr<client::RowSource>> OpenRows(const InputArguments& input,
                                                            client::CancelToken& cancel);

// Opens rows with labels: in csv the column `label`, in svmlight the start of each line.
absl::StatusOr<std::unique_ptr<client::LabeledRowSource>> OpenLabeledRows(
    const InputArguments& input, client::CancelToken& cancel);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_INPUT_ROWS_H_
