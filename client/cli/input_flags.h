// How the command line says which rows a command reads.
#ifndef PHIMAP_CLIENT_CLI_INPUT_FLAGS_H_
#define PHIMAP_CLIENT_CLI_INPUT_FLAGS_H_

#include "client/cli/input_rows.h"

namespace CLI {
class App;
}

namespace phimap::cli {

inline constexpr char kLabelHelp[] = "Column of the CSV file that is not an input";
inline constexpr char kColumnsHelp[] =
    "The inputs by name, in this order, of a CSV file: x1,x2; or how many columns rows from an "
    "svmlight file have. Unless given, those that the version has names for, which must stand in "
    "its order";

// Adds the flags to a command, which has its other positional arguments already. `label_help` says
// what --label is to it. `input` outlives the command.
void AddInput(CLI::App& command, InputArguments& input, const char* label_help = kLabelHelp);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_INPUT_FLAGS_H_
