#include "client/cli/usage.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status/command_line.h"

namespace phimap::cli {
namespace {

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

// Whether the command that was given has this flag.
bool HasFlag(const CLI::App& app, const std::string& flag) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return !commands.empty() && commands.front()->get_option_no_throw(flag) != nullptr;
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
    if (flag->takes_value && words[i].back() == '=') {
      // CLI11 would take the following word for the value.
      words[i].pop_back();
      words.insert(words.begin() + static_cast<ptrdiff_t>(++i), "");
      continue;
    }
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
  // The name of --spec in release 0.1.
  const auto renamed = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.substr(0, word.find('=')) == "--mapping";
  });
  if (renamed != words.end() && HasFlag(app, "--spec")) {
    std::cerr << "phimap: --mapping is now --spec\n";
    return ExitCode::kBadInput;
  }
  std::cerr << "phimap: " << UsageText(app, error) << "\n";
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
