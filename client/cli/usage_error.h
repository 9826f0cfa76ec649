// Errors in the words of a command line.
#ifndef PHIMAP_CLIENT_CLI_USAGE_ERROR_H_
#define PHIMAP_CLIENT_CLI_USAGE_ERROR_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap::cli {

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

#endif  // PHIMAP_CLIENT_CLI_USAGE_ERROR_H_
