// Columns of a file with a header that are inputs, their order, and the treatment of the others.
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
  // --exclude: no inputs.
  std::vector<std::string> exclude = {};
  // --label: the column of labels, which is no input; empty for none.
  std::string label = {};
  // --passthrough: columns that are copied to the output. They are inputs only if --columns or the
  // version names them too.
  std::vector<std::string> passthrough = {};
  // --by-name: the version's columns, in its order, found by name.
  bool by_name = false;
  // Column names of the version that maps the rows. Empty if they have no names, or if there is no
  // version yet.
  std::vector<std::string> of_version = {};
  // Reference of that version in messages: "letters@prod".
  std::string reference = {};
};

// Positions in the header, from 0.
struct ChosenColumns {
  // In the order of the rows.
  std::vector<int> inputs;
  // -1: none.
  int label = -1;
  std::vector<int> passthrough;
  // Columns that neither the version nor an option names.
  std::vector<int> left_out;
};

// kInvalidArgument, with the columns of the file: for a name that is not in the header or has two
// roles; for a passthrough column with the name of a feature (f0, f1 …); for inputs that differ
// from the version's columns (client/cpp/column_names.h) in name or order. If the version has
// column names, other columns are left out. `file` is for messages.
absl::StatusOr<ChosenColumns> ChooseColumns(const std::vector<std::string>& header,
                                            const ColumnChoice& choice, const std::string& file);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_
