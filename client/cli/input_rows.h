// The rows that a command reads: what the command line says of them, and a reader.
#ifndef PHIMAP_CLIENT_CLI_INPUT_ROWS_H_
#define PHIMAP_CLIENT_CLI_INPUT_ROWS_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/column_choice.h"
#include "client/cli/file_format.h"
#include "client/cli/passthrough_cells.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

struct InputArguments {
  // Paths and patterns; "-" is standard input. Several files are one stream.
  std::vector<std::string> paths;
  // Paths and patterns that were named without --input; WithFiles puts them behind `paths`.
  std::vector<std::string> more_paths;
  // "csv", "npy", "svmlight", "text" or empty: by the extension.
  std::string format;
  // What parts the cells of CSV: one character, or "tab"; empty: a comma, or a tab in files named
  // .tsv.
  std::string delimiter;
  // Which columns of CSV are inputs. Its `columns` are taken from columns_given.
  ColumnChoice choice = {};
  // --columns as given: of csv the names of the inputs, of svmlight the number of them.
  std::vector<std::string> columns_given = {};
  // Of csv: the column of texts, which are then the examples; empty: rows of numbers.
  std::string text;
  // Columns of svmlight rows, unless columns_given says it; 0: what the file has.
  int32_t columns = 0;
  // Of svmlight: the first index is 0.
  bool zero_based = false;
  // Where the cells of `choice.passthrough` go; null if there are none.
  std::shared_ptr<PassthroughCells> passthrough = nullptr;
};

// With all files that are named, those that patterns match among them, in `paths`. kInvalidArgument
// if there is none.
absl::StatusOr<InputArguments> WithFiles(InputArguments input);

// The format of all its files; kInvalidArgument if they are not of one. REQUIRES: WithFiles.
absl::StatusOr<FileFormat> FormatOf(const InputArguments& input);

// kInvalidArgument if one of the files is the output, as RefuseOverwritingInput says.
absl::Status RefuseOverwritingInput(const InputArguments& input, const std::string& output);

// `given` as a number of columns. kInvalidArgument unless it is one, 1..65536.
absl::StatusOr<int32_t> CountOfColumns(const std::vector<std::string>& given);

// With what the version says of its columns: the number, of formats that do not tell it; the names,
// of formats that have them. `notes` is told, for people, what is not checked.
absl::StatusOr<InputArguments> WithColumnsOf(InputArguments input, client::Client& client,
                                             absl::string_view reference, std::ostream& notes);

// Tells `notes` which columns of `rows`, which OpenRows or OpenLabeledRows opened, are not mapped
// though nobody said so.
void NoteColumnsLeftOut(const client::RowSource& rows, std::ostream& notes);

// A reader of all files, one after the other. `cancel` ends what it reads before it returns.
// Errors: kInvalidArgument for options of another format. REQUIRES: WithFiles.
absl::StatusOr<std::unique_ptr<client::RowSource>> OpenRows(const InputArguments& input,
                                                            client::CancelToken& cancel);

// The same with the labels of the rows: of csv the column `label`, of svmlight what a line begins
// with.
absl::StatusOr<std::unique_ptr<client::LabeledRowSource>> OpenLabeledRows(
    const InputArguments& input, client::CancelToken& cancel);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_INPUT_ROWS_H_
