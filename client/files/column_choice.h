// Chooses which columns of a file with a header are inputs, and in which order.
#ifndef PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_
#define PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace phimap::cli {

// A command's options for columns.
struct ColumnChoice {
  // --columns: the inputs, in this order. If empty, all columns without another role, in the file's
  // order.
  std::vector<std::string> columns = {};
  // --exclude: columns that are not inputs.
  std::vector<std::string> exclude = {};
  // --label: the column of labels, which is not an input; empty if there is none.
  std::string label = {};
  // --weights, --groups and --parts: columns with what is known of a row that is trained on, which
  // are not inputs; empty if there are none.
  std::string weights = {};
  std::string groups = {};
  std::string parts = {};
  // --passthrough: columns that are copied to the output. They are inputs only if --columns or the
  // version also lists them.
  std::vector<std::string> passthrough = {};
  // --by-name: the inputs are the version's columns, found by name, in the version's order.
  bool by_name = false;
  // Column names of the version that maps the rows. Empty if the columns have no names, or if there
  // is no version yet.
  std::vector<std::string> of_version = {};
  // Reference of that version in messages: "letters@prod".
  std::string reference = {};
};

// Positions in the header, from 0.
struct ChosenColumns {
  // Positions of the inputs, in the order of the rows' columns.
  std::vector<int> inputs;
  // -1: none.
  int label = -1;
  int weights = -1;
  int groups = -1;
  int parts = -1;
  std::vector<int> passthrough;
  // Columns that neither the version nor an option mentions.
  std::vector<int> left_out;
};

// Assigns a role to each column. Errors are kInvalidArgument and show the columns of the file: a
// name that is not in the header or has two roles; a passthrough column with the name of a feature
// (f0, f1 …); inputs that differ from the version's columns (client/cpp/row_source.h) in name or
// order. If the version has column names, other columns are left out. `file` is for messages.
absl::StatusOr<ChosenColumns> ChooseColumns(const std::vector<std::string>& header,
                                            const ColumnChoice& choice, const std::string& file);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_
