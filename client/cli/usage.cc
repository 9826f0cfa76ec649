#include "client/cli/usage.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace phimap::cli {
namespace {

// Number of letters to insert, delete, replace or swap with a neighbour to turn one word into the
// other (optimal string alignment).
size_t Distance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> before_last(to.size() + 1);
  std::vector<size_t> last(to.size() + 1);
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t exchanged = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, exchanged});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[to.size()];
}

// Returns the entry of `known` that is closest to `word`; null if every entry differs by more than
// a third of the letters of `word`. The first `unmeant` letters of `word` are not counted.
const std::string* NearestTo(absl::string_view word, size_t unmeant,
                             const std::vector<std::string>& known) {
  const std::string* meant = nullptr;
  size_t fewest = (word.size() - std::min<size_t>(word.size(), unmeant)) / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(word, candidate);
    if (distance >= fewest) continue;
    fewest = distance;
    meant = &candidate;
  }
  return meant;
}

}  // namespace

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

namespace {

bool IsFlag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::string WithDashes(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

struct LongFlag {
  // Name as phimap writes it, without the leading dashes.
  std::string name;
  bool takes_value = false;
};

// Collects the long flags of all commands, by name with dashes.
void CollectFlags(const CLI::App& app, std::map<std::string, LongFlag>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags[WithDashes(name)] = {name, option->get_items_expected_max() > 0};
    }
  }
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    CollectFlags(*command, flags);
  }
}

// Returns the flag in a word, with or without a value; null if the word is not a flag.
const LongFlag* FlagOf(const std::string& word, const std::map<std::string, LongFlag>& flags) {
  if (!absl::StartsWith(word, "--")) return nullptr;
  const auto found = flags.find(WithDashes(absl::string_view(word).substr(2, word.find('=') - 2)));
  return found == flags.end() ? nullptr : &found->second;
}

// Returns the commands that the command line gives, from phimap itself to the innermost.
std::vector<const CLI::App*> CommandsNamed(const CLI::App& app) {
  std::vector<const CLI::App*> commands = {&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

// "phimap alias set".
std::string FullName(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name()
                           : absl::StrCat(FullName(*parent), " ", command.get_name());
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    names.push_back(command->get_name());
  }
  return names;
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

// Returns the command that lacks a subcommand, such as `phimap` or `phimap alias`; null if there is
// none.
const CLI::App* Unfinished(const CLI::App& app) {
  const CLI::App* const last = CommandsNamed(app).back();
  return CommandsOf(*last).empty() ? nullptr : last;
}

// CLI11 drops a word that it takes for a command, and reports only that a command is missing.
std::string MissingCommand(const CLI::App& command, const CLI::App& app) {
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!IsFlag(word)) return UnknownCommandText(FullName(command), word, CommandsOf(command));
  }
  return MissingCommandText(FullName(command), CommandsOf(command));
}

// Rewrites CLI11's message so that it says what to do.
std::string InOurWords(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string help = absl::StrCat("\n  ", FullName(*CommandsNamed(app).back()), " --help");
  const std::string name = text.substr(0, text.find(':'));
  if (error.get_name() == "ArgumentMismatch" && IsFlag(name)) {
    return absl::StrCat(name, " takes a value, such as ", name, "=VALUE", help);
  }
  absl::string_view rest = text;
  if (error.get_name() == "ConversionError" && absl::ConsumePrefix(&rest, "Could not convert: ")) {
    const size_t equals = rest.find(" = ");
    if (equals != absl::string_view::npos) {
      return absl::StrCat(rest.substr(0, equals), ": expected a number, got '",
                          rest.substr(equals + 3), "'", help);
    }
  }
  return absl::StrCat(text, help);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WithKnownFlags(const CLI::App& app, int argc,
                                                        char** argv) {
  std::map<std::string, LongFlag> flags;
  CollectFlags(app, flags);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const LongFlag* const flag = FlagOf(words[i], flags);
    if (flag == nullptr) continue;
    const size_t end = std::min(words[i].find('='), words[i].size());
    const bool alone = end == words[i].size();
    words[i].replace(2, end - 2, flag->name);
    if (!alone || !flag->takes_value || i + 1 == words.size()) continue;
    // CLI11 would take the following flag for the value.
    if (FlagOf(words[i + 1], flags) == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(words[i], " takes a value, such as ", words[i],
                                                   "=VALUE; the next word, ", words[i + 1],
                                                   ", is a flag"));
  }
  return words;
}

ExitCode AnswerParseError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  // Scripts of earlier releases give this command. It is answered before its flags and --help.
  const auto first = std::find_if_not(words.begin(), words.end(), IsFlag);
  if (app.get_subcommands().empty() && first != words.end() && *first == "admin") {
    std::cerr << "phimap: phimap admin is now phimapd admin, with the same flags\n";
    return ExitCode::kBadInput;
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(error);
    return ExitCode::kOk;
  }
  const CLI::App* const unfinished = Unfinished(app);
  // An unknown command is reported before a flag that was meant for it.
  const bool no_command = error.get_name() == "RequiredError" && unfinished != nullptr;
  std::string text;
  if (no_command && !std::all_of(words.begin(), words.end(), IsFlag)) {
    text = MissingCommand(*unfinished, app);
  } else {
    text = UnknownFlag(app);
  }
  if (text.empty() && no_command) text = MissingCommand(*unfinished, app);
  if (text.empty()) text = InOurWords(app, error);
  std::cerr << "phimap: " << text << "\n";
  return ExitCode::kBadInput;
}

Command AddHelp(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Explain a command and its options");
  command->add_option("COMMAND", *words,
                      "For example 'phimap help build' or 'phimap help alias set'");
  return {
      .app = command, .run_locally = [words](LocalContext& context) -> absl::Status {
        const CLI::App* asked = &context.app;
        for (const std::string& word : *words) {
          const std::vector<std::string> names = CommandsOf(*asked);
          if (std::find(names.begin(), names.end(), word) == names.end()) {
            return absl::InvalidArgumentError(UnknownCommandText(FullName(*asked), word, names));
          }
          asked = asked->get_subcommand(word);
        }
        context.out << asked->get_formatter()->make_help(asked, FullName(*asked),
                                                         CLI::AppFormatMode::Normal);
        return absl::OkStatus();
      }};
}

}  // namespace phimap::cli
