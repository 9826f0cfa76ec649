// Command-line options for the rows that a command reads.
#ifndef PHIMAP_CLIENT_CLI_ARGUMENTS_INPUT_FLAGS_H_
#define PHIMAP_CLIENT_CLI_ARGUMENTS_INPUT_FLAGS_H_

#include "client/cli/arguments/input_rows.h"

namespace CLI {
class App;
}

namespace phimap::cli {

inline constexpr char kLabelHelp[] = "Column of the CSV file that is not an input";
inline constexpr char kColumnsHelp[] =
    "Input columns by name, in this order, for a CSV file: x1,x2; or the number of columns, for an "
    "svmlight file (default: the version's columns, which the file must have in the same order)";

// Adds the flags to a command, after its other positional arguments. `label_help` explains --label
// for this command. `input` must outlive the command.
void AddInput(CLI::App& command, InputArguments& input, const char* label_help = kLabelHelp);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_INPUT_FLAGS_H_
