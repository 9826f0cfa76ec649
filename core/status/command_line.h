// What phimap and phimapd say of a command line that they cannot read, on top of CLI11: which flag,
// what was expected, and what came.
#ifndef PHIMAP_CORE_STATUS_COMMAND_LINE_H_
#define PHIMAP_CORE_STATUS_COMMAND_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/string_view.h"

namespace phimap {

// Checks of a flag's value, which take the place of CLI11's: the message says what was expected and
// what came. All look in --help as CLI11's do.
//
// An integer in low..high.
class IntegerFrom final : public CLI::Validator {
 public:
  IntegerFrom(int64_t low, int64_t high);
};
// A finite number in low..high.
class NumberFrom final : public CLI::Validator {
 public:
  NumberFrom(double low, double high);
};
// One of these words. REQUIRES: at least one.
class OneOf final : public CLI::Validator {
 public:
  explicit OneOf(std::vector<std::string> words);
};

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

// Returns the names of the commands of `app`; empty if it has none.
std::vector<std::string> CommandsOf(const CLI::App& app);
// Returns the name with those of the commands around it: "phimap alias set".
std::string FullName(const CLI::App& command);
// Whether a word of the command line is a flag: it begins with a dash and is not "-".
bool IsFlag(absl::string_view word);

// Returns the message about what is wrong with the words that `app` parsed, and a second line that
// says where help is. It names the command or the flag that was meant, what was expected and what
// came. REQUIRES: `error` is that of app.parse, and not the answer to --help or --version.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_COMMAND_LINE_H_
