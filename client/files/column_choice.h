// Columns of a file with a header that are inputs, their order, and the treatment of the others.
#ifndef PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_
#define PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace phimap::cli {

// A command's options for columns.
struct ColumnChoice {
  // --columns: the inputs, in this order; empty: all columns without another role, in the file's
  // order.
  std::vector<std::string> columns = {};
  // --exclude: no inputs.
  std::vector<std::string> exclude = {};
  // --label: no input; empty for none.
  std::string label = {};
  // --passthrough: carried to the output; inputs only where --columns or the version names them
  // too.
  std::vector<std::string> passthrough = {};
  // --by-name: the version's columns, in its order, found by name.
  bool by_name = false;
  // Names of the columns of the version that maps the rows; empty: they have none, or there is no
  // version yet.
  std::vector<std::string> of_version = {};
  // Reference of that version in messages: "letters@prod".
  std::string reference = {};
};

// Places in the header, from 0.
struct ChosenColumns {
  // In the order of the rows.
  std::vector<int> inputs;
  // -1: none.
  int label = -1;
  std::vector<int> passthrough;
  // Columns that are not the version's and that no option names.
  std::vector<int> left_out;
};

// kInvalidArgument, with the columns of the file: a name that is not in the header, or is given two
// meanings; a column that is carried along and called as features are (f0, f1 …); inputs that are
// not called as the version's (client/cpp/column_names.h), in its order. Columns that the version
// does not have are left out, if it has names. `file` is for messages.
absl::StatusOr<ChosenColumns> ChooseColumns(const std::vector<std::string>& header,
                                            const ColumnChoice& choice, const std::string& file);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_COLUMN_CHOICE_H_
