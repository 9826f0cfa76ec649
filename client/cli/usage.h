// Parses the words of a command line and reports errors in them.
#ifndef PHIMAP_CLIENT_CLI_USAGE_H_
#define PHIMAP_CLIENT_CLI_USAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/commands/commands.h"
#include "core/status/exit_code.h"

namespace CLI {
class ParseError;
}

namespace phimap::cli {

// Returns the arguments after the program's name, with the flags spelled as `app` spells them:
// --held_out becomes --held-out. Arguments after -- are unchanged. kInvalidArgument for a flag
// without its value that is followed by another flag.
absl::StatusOr<std::vector<std::string>> WithKnownFlags(const CLI::App& app, int argc, char** argv);

// Prints the error, and a suggestion, to standard error; --help and --version, which arrive here
// too, print to standard output.
ExitCode AnswerParseError(const CLI::App& app, const CLI::ParseError& error);

// `phimap help`.
Command AddHelp(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_USAGE_H_
