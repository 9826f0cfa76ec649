// Completions of the words of `phimap`, for shells.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "core/status/command_line.h"

namespace phimap::cli {
namespace {

struct FlagWords {
  // The flag's names with their dashes.
  std::vector<std::string> names;
  std::string description;
  bool takes_value = false;
  // Possible values; empty: any.
  std::vector<std::string> values;
};

struct CommandWords {
  // The command's words: "" for phimap itself, "alias set" for that command.
  std::string path;
  std::vector<std::pair<std::string, std::string>> commands;  // Each with its description.
  std::vector<FlagWords> flags;
};

// Returns the choices of a flag, which CLI11 describes as "TEXT:{csv,npy}" or
// "{native->0,inference->1}".
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::vector<std::string> values =
      absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',', absl::SkipEmpty());
  for (std::string& value : values) value = value.substr(0, value.find("->"));
  return values;
}

std::vector<FlagWords> FlagsOf(const CLI::App& command) {
  std::vector<FlagWords> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional()) continue;
    FlagWords flag{.description = option->get_description()};
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    flag.takes_value = option->get_items_expected_max() > 0;
    flag.values = ValuesOf(*option);
    flags.push_back(std::move(flag));
  }
  return flags;
}

void Collect(const CLI::App& app, const std::string& path, const std::vector<FlagWords>& outer,
             std::vector<CommandWords>& all) {
  CommandWords words{.path = path, .flags = FlagsOf(app)};
  // Flags of phimap itself may also follow a command.
  for (const FlagWords& flag : outer) {
    const bool known = std::any_of(words.flags.begin(), words.flags.end(),
                                   [&](const FlagWords& f) { return f.names == flag.names; });
    if (!known) words.flags.push_back(flag);
  }
  const std::vector<FlagWords> flags = path.empty() ? words.flags : outer;
  const std::vector<const CLI::App*> commands = app.get_subcommands(/*filter=*/nullptr);
  for (const CLI::App* command : commands) {
    words.commands.emplace_back(command->get_name(), command->get_description());
  }
  all.push_back(std::move(words));
  for (const CLI::App* command : commands) {
    Collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), flags,
            all);
  }
}

std::vector<CommandWords> AllCommands(const CLI::App& app) {
  std::vector<CommandWords> all;
  Collect(app, "", {}, all);
  return all;
}

// Puts the text in single quotes, which all three shells accept.
std::string QuotedForShell(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Lines of a case statement of bash and zsh that map the words so far to a command.
std::string PathCases(const std::vector<CommandWords>& all, absl::string_view indent) {
  std::vector<std::string> patterns;
  for (const CommandWords& command : all) {
    if (command.path.empty()) continue;
    // The word "build" continues the path ""; the word "set" continues the path "alias".
    const size_t last = command.path.rfind(' ');
    patterns.push_back(last == std::string::npos
                           ? absl::StrCat("':", command.path, "'")
                           : absl::StrCat("'", command.path.substr(0, last), ":",
                                          command.path.substr(last + 1), "'"));
  }
  return absl::StrCat(indent, absl::StrJoin(patterns, "|"), ") path=\"${path:+$path }$word\" ;;\n");
}

// Cases of a script for bash or zsh: the values of the flag `previous`, or files for flags that
// take any value.
std::string ValueCases(const std::vector<CommandWords>& all, absl::string_view indent) {
  std::string cases;
  for (const CommandWords& command : all) {
    std::vector<std::string> any;
    for (const FlagWords& flag : command.flags) {
      if (!flag.takes_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) {
        patterns.push_back(absl::StrCat("'", command.path, ":", name, "'"));
      }
      if (flag.values.empty()) {
        any.insert(any.end(), patterns.begin(), patterns.end());
        continue;
      }
      absl::StrAppend(&cases, indent, absl::StrJoin(patterns, "|"),
                      ") words=", QuotedForShell(absl::StrJoin(flag.values, " ")), " ;;\n");
    }
    if (!any.empty()) absl::StrAppend(&cases, indent, absl::StrJoin(any, "|"), ") files=1 ;;\n");
  }
  return cases;
}

// Cases of a script for bash or zsh: the commands and flags that may come next.
std::string WordCases(const std::vector<CommandWords>& all, absl::string_view indent) {
  std::string cases;
  for (const CommandWords& command : all) {
    std::vector<std::string> words;
    for (const auto& [name, description] : command.commands) words.push_back(name);
    for (const FlagWords& flag : command.flags) {
      words.insert(words.end(), flag.names.begin(), flag.names.end());
    }
    absl::StrAppend(&cases, indent, "'", command.path,
                    "') words=", QuotedForShell(absl::StrJoin(words, " ")), " ;;\n");
  }
  return cases;
}

// Returns a script that completes commands, flags, and the values of flags that have a fixed set of
// values; elsewhere it completes file names. It is derived from the commands of `app`. The shell
// must evaluate it: eval "$(phimap completion bash)". Pure.
std::string BashCompletion(const CLI::App& app) {
  const std::vector<CommandWords> all = AllCommands(app);
  return absl::StrCat(
      "# Completion of phimap for bash: eval \"$(phimap completion bash)\", or in a file of\n"
      "# /usr/share/bash-completion/completions named phimap.\n"
      "_phimap() {\n  local current=${COMP_WORDS[COMP_CWORD]} "
      "previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local path= word words= files= i\n"
      "  # --flag=value is three words to bash.\n"
      "  if [ \"$current\" = = ]; then current=; "
      "elif [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case $path:$word in\n",
      PathCases(all, "      "),
      "    esac\n"
      "  done\n  case $path:$previous in\n",
      ValueCases(all, "    "), "    *) case $path in\n", WordCases(all, "      "),
      "    esac ;;\n"
      "  esac\n  COMPREPLY=()\n  # Without replies, bash completes file names.\n"
      "  if [ -z \"$files\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$current\")); fi\n"
      "}\ncomplete -o bashdefault -o default -F _phimap phimap\n");
}

std::string ZshCompletion(const CLI::App& app) {
  const std::vector<CommandWords> all = AllCommands(app);
  return absl::StrCat(
      "#compdef phimap\n"
      "# Completion of phimap for zsh: eval \"$(phimap completion zsh)\" after compinit, or in a "
      "file\n# of $fpath named _phimap.\n"
      "_phimap() {\n  local current=${words[CURRENT]} previous=${words[CURRENT-1]}\n"
      "  local path= word choices= files= i\n"
      "  if [[ $current == --*=* ]]; then previous=${current%%=*}; compset -P '*='; fi\n"
      "  for ((i = 2; i < CURRENT; ++i)); do\n"
      "    word=${words[i]}\n    case $path:$word in\n",
      PathCases(all, "      "),
      "    esac\n"
      "  done\n  case $path:$previous in\n",
      absl::StrReplaceAll(ValueCases(all, "    "), {{"words=", "choices="}}),
      "    *) case $path in\n",
      absl::StrReplaceAll(WordCases(all, "      "), {{"words=", "choices="}}),
      "    esac ;;\n"
      "  esac\n  [[ -n $files || $current != -* ]] && _files\n"
      "  [[ -z $files ]] && compadd -- ${=choices}\n"
      "}\nif [[ $funcstack[1] == _phimap ]]; then _phimap \"$@\"; else compdef _phimap phimap; "
      "fi\n");
}

std::string FishCompletion(const CLI::App& app) {
  std::string script =
      "# Completion of phimap for fish: phimap completion fish | source, or in a file of\n"
      "# ~/.config/fish/completions named phimap.fish.\n"
      "function __phimap_at\n  set -l path\n"
      "  for word in (commandline -opc)[2..]\n"
      "    contains -- (string trim \"$path $word\") $__phimap_paths\n"
      "    and set path (string trim \"$path $word\")\n"
      "  end\n  test \"$path\" = \"$argv\"\n"
      "end\n";
  const std::vector<CommandWords> all = AllCommands(app);
  std::string paths = "set -g __phimap_paths";
  for (const CommandWords& command : all) {
    if (!command.path.empty()) absl::StrAppend(&paths, " ", QuotedForShell(command.path));
  }
  absl::StrAppend(&script, paths, "\n");
  for (const CommandWords& command : all) {
    const std::string at =
        absl::StrCat("complete -c phimap -n ",
                     QuotedForShell(absl::StrCat("__phimap_at ", QuotedForShell(command.path))));
    for (const auto& [name, description] : command.commands) {
      absl::StrAppend(&script, at, " -f -a ", name, " -d ", QuotedForShell(description), "\n");
    }
    for (const FlagWords& flag : command.flags) {
      absl::StrAppend(&script, at);
      for (const std::string& name : flag.names) {
        const bool is_long = name[1] == '-';
        absl::StrAppend(&script, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
      }
      if (flag.takes_value) absl::StrAppend(&script, flag.values.empty() ? " -r" : " -x");
      if (!flag.values.empty()) {
        absl::StrAppend(&script, " -a ", QuotedForShell(absl::StrJoin(flag.values, " ")));
      }
      absl::StrAppend(&script, " -d ", QuotedForShell(flag.description), "\n");
    }
  }
  return script;
}

}  // namespace

Command AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print shell completions for phimap: eval \"$(phimap completion bash)\"");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(OneOf({"bash", "zsh", "fish"}));
  return {.app = command, .run_locally = [shell](LocalContext& context) {
            context.out << (*shell == "bash"  ? BashCompletion(context.app)
                            : *shell == "zsh" ? ZshCompletion(context.app)
                                              : FishCompletion(context.app));
            return absl::OkStatus();
          }};
}

}  // namespace phimap::cli
