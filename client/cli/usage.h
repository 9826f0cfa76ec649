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

// Returns "unknown flag --lable; did you mean --label?" for `word` "--lable" or "--lable=a". The
// suggestion is the flag of `known` with the smallest distance, or the first of several such flags.
// There is no suggestion if all flags differ by more than a third of the letters of `word`. Pure.
std::string UnknownFlagText(absl::string_view word, const std::vector<std::string>& known);

// Returns "phimap has no command 'bulid'; did you mean build? the commands are build, list" for
// `word` "bulid". `outer` is the parent command. Pure.
std::string UnknownCommandText(absl::string_view outer, absl::string_view word,
                               const std::vector<std::string>& known);

// Returns "a command of phimap is missing; the commands are build, list". Pure.
std::string MissingCommandText(absl::string_view outer, const std::vector<std::string>& known);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_USAGE_H_
