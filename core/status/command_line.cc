#include "core/status/command_line.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap {
namespace {

// Quotes a word of the command line as shells do.
std::string InQuotes(absl::string_view word) { return absl::StrCat("'", Excerpt(word), "'"); }

// Returns the commands that the command line gives, from the program itself to the innermost.
std::vector<const CLI::App*> CommandsNamed(const CLI::App& app) {
  std::vector<const CLI::App*> commands = {&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

// Returns the message about the first unknown flag; empty if there is none. It is reported before
// any other error, because it may make other words look missing or superfluous.
std::string UnknownFlag(const CLI::App& app) {
  std::vector<std::string> known;
  const std::vector<const CLI::App*> commands = CommandsNamed(app);
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
  }
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!IsFlag(word)) continue;
    return absl::StrCat(UnknownFlagText(word, known), "\n  the flags are listed by '",
                        FullName(*commands.back()), " --help'");
  }
  return "";
}

// CLI11 drops a word that it takes for a command, and reports only that a command is missing.
std::string MissingCommand(const CLI::App& command, const CLI::App& app) {
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!IsFlag(word)) return UnknownCommandText(FullName(command), word, CommandsOf(command));
  }
  return MissingCommandText(FullName(command), CommandsOf(command));
}

// Returns CLI11's message in words that name the flag, what was expected and what came.
std::string InOurWords(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string kind = error.get_name();
  const std::string name = text.substr(0, text.find(':'));
  absl::string_view rest = text;
  if (kind == "ArgumentMismatch" && IsFlag(name)) {
    if (absl::StrContains(text, "At Most 1 required")) {
      return absl::StrCat(name, " is given more than once; expected one value");
    }
    return absl::StrCat(name, " takes a value, such as ", name, "=VALUE");
  }
  if (kind == "ConversionError" && absl::ConsumePrefix(&rest, "Could not convert: ")) {
    const size_t equals = rest.find(" = ");
    if (equals == absl::string_view::npos) return text;
    return absl::StrCat(rest.substr(0, equals), ": expected a number, got ",
                        InQuotes(rest.substr(equals + 3)));
  }
  // CLI11 calls this error by the program's name.
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> words = app.remaining(/*recurse=*/true);
    if (!words.empty()) return absl::StrCat("expected no further word, got ", InQuotes(words[0]));
  }
  if (kind == "ExcludesError") {
    const std::vector<std::string> flags = absl::StrSplit(text, " excludes ");
    if (flags.size() == 2) {
      return absl::StrCat(flags[0], " excludes ", flags[1], "; expected one of them, got both");
    }
  }
  return text;
}

}  // namespace

IntegerFrom::IntegerFrom(int64_t low, int64_t high)
    : Validator(absl::StrCat("INT in [", low, " - ", high, "]")) {
  func_ = [low, high](const std::string& input) {
    int64_t value = 0;
    if (absl::SimpleAtoi(input, &value) && low <= value && value <= high) return std::string();
    return absl::StrCat("expected an integer from ", low, " to ", high, ", got ", InQuotes(input));
  };
}

NumberFrom::NumberFrom(double low, double high)
    : Validator(absl::StrCat("FLOAT in [", low, " - ", high, "]")) {
  func_ = [low, high](const std::string& input) {
    double value = 0;
    if (absl::SimpleAtod(input, &value) && low <= value && value <= high) return std::string();
    return absl::StrCat("expected a number from ", low, " to ", high, ", got ", InQuotes(input));
  };
}

OneOf::OneOf(std::vector<std::string> words)
    : Validator(absl::StrCat("{", absl::StrJoin(words, ","), "}")) {
  func_ = [words = std::move(words)](const std::string& input) {
    for (const std::string& word : words) {
      if (word == input) return std::string();
    }
    return absl::StrCat("expected ", Alternatives(words), ", got ", InQuotes(input));
  };
}

std::string UnknownFlagText(absl::string_view word, const std::vector<std::string>& known) {
  const absl::string_view flag = word.substr(0, word.find('='));
  const std::string* const meant = NearestTo(flag, /*unmeant=*/2, known);
  return absl::StrCat("unknown flag ", flag,
                      meant == nullptr ? "" : absl::StrCat("; did you mean ", *meant, "?"));
}

std::string UnknownCommandText(absl::string_view outer, absl::string_view word,
                               const std::vector<std::string>& known) {
  const std::string* const meant = NearestTo(word, /*unmeant=*/0, known);
  return absl::StrCat(outer, " has no command '", word, "'; ",
                      meant == nullptr ? "" : absl::StrCat("did you mean ", *meant, "? "),
                      "the commands are ", absl::StrJoin(known, ", "));
}

std::string MissingCommandText(absl::string_view outer, const std::vector<std::string>& known) {
  return absl::StrCat("a command of ", outer, " is missing; the commands are ",
                      absl::StrJoin(known, ", "));
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string FullName(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name()
                           : absl::StrCat(FullName(*parent), " ", command.get_name());
}

bool IsFlag(absl::string_view word) { return word.size() > 1 && word.front() == '-'; }

std::string UsageText(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  const CLI::App& last = *CommandsNamed(app).back();
  const bool no_command = error.get_name() == "RequiredError" && !CommandsOf(last).empty();
  // An unknown command is reported before a flag that was meant for it.
  if (no_command && !std::all_of(words.begin(), words.end(), IsFlag)) {
    return MissingCommand(last, app);
  }
  const std::string unknown = UnknownFlag(app);
  if (!unknown.empty()) return unknown;
  if (no_command) return MissingCommand(last, app);
  return absl::StrCat(InOurWords(app, error), "\n  ", FullName(last), " --help");
}

}  // namespace phimap
