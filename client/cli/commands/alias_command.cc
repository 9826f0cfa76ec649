// `phimap alias`: names for versions, and moving them.
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "core/status/status_macros.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {
namespace {

struct AliasArguments {
  // "set", "rollback", "delete" or "list".
  std::string action;
  // "letters@prod"; for list a mapping's name, or empty for all.
  std::string name;
  // The version for `set`: "7", or "sha256:" and at least 7 digits of a digest.
  std::string version;
  // The etag for `set` and `delete`; empty means unconditional.
  std::string etag;
  bool json = false;
};

// Digits of a digest that `phimap list NAME` shows: 48 bits, which distinguish the versions of any
// server.
constexpr size_t kDigestDigits = 12;

struct AliasName {
  std::string name;
  std::string alias;
};

// Splits the text; the server decides which names are valid.
absl::StatusOr<AliasName> ParseAliasName(const std::string& text) {
  const size_t at = text.find('@');
  if (at == 0 || at == std::string::npos || at + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "NAME@ALIAS: expected a mapping and an alias, such as letters@prod, got '", text, "'"));
  }
  return AliasName{text.substr(0, at), text.substr(at + 1)};
}

// Returns the reference to a version of the mapping, such as "letters@7".
absl::StatusOr<std::string> VersionOf(const std::string& name, const std::string& version) {
  int64_t number = 0;
  const bool is_number = absl::SimpleAtoi(version, &number) && number > 0;
  if (is_number || absl::StartsWith(version, "sha256:")) return absl::StrCat(name, "@", version);
  return absl::InvalidArgumentError(
      absl::StrCat("VERSION: expected the number of a version, such as 7, or sha256: and at least "
                   "7 digits of its digest; got '",
                   version, "'"));
}

absl::Status PrintMove(const AliasName& name, const v1::Alias& alias, bool json,
                       std::ostream& out) {
  if (json) return PrintJson(alias, out);
  out << name.name << "@" << name.alias << " is version " << alias.version();
  if (alias.previous_version() != 0) out << ", before " << alias.previous_version();
  out << "  (etag " << alias.etag() << ")\n";
  return absl::OkStatus();
}

void PrintAliases(const std::vector<v1::Mapping>& mappings, std::ostream& out) {
  size_t width = 5;
  for (const v1::Mapping& mapping : mappings) {
    for (const v1::Alias& alias : mapping.aliases()) {
      width = std::max(width, mapping.name().size() + 1 + alias.name().size());
    }
  }
  out << absl::StrFormat("%-*s  %7s  %6s  %-12s  %-16s  %s\n", width, "ALIAS", "VERSION", "BEFORE",
                         "DIGEST", "MOVED (UTC)", "ETAG");
  for (const v1::Mapping& mapping : mappings) {
    for (const v1::Alias& alias : mapping.aliases()) {
      const std::string before =
          alias.previous_version() == 0 ? "-" : absl::StrCat(alias.previous_version());
      const absl::Time moved = absl::FromUnixSeconds(alias.move_time().seconds());
      const std::string by =
          alias.moved_by().empty() ? "" : absl::StrCat("  by ", alias.moved_by());
      out << absl::StrFormat("%-*s  %7d  %6s  %-12s  %-16s  %s%s\n", width,
                             absl::StrCat(mapping.name(), "@", alias.name()), alias.version(),
                             before, alias.digest().substr(0, kDigestDigits),
                             absl::FormatTime("%Y-%m-%d %H:%M", moved, absl::UTCTimeZone()),
                             alias.etag(), by);
    }
  }
}

absl::Status List(const AliasArguments& arguments, CommandContext& context) {
  std::vector<v1::Mapping> mappings;
  if (arguments.name.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(mappings, context.client.ListMappings());
  } else {
    PHIMAP_ASSIGN_OR_RETURN(v1::Mapping mapping, context.client.GetMapping(arguments.name));
    mappings.push_back(std::move(mapping));
  }
  if (arguments.json) {
    v1::ListMappingsResponse all;
    all.mutable_mappings()->Assign(mappings.begin(), mappings.end());
    return PrintJson(all, context.out);
  }
  const bool none = std::all_of(mappings.begin(), mappings.end(),
                                [](const v1::Mapping& m) { return m.aliases().empty(); });
  if (none) {
    *context.console.stream << "no aliases yet; `phimap alias set NAME@ALIAS VERSION` makes one"
                            << std::endl;
    return absl::OkStatus();
  }
  PrintAliases(mappings, context.out);
  return absl::OkStatus();
}

// Prints the alias's new and previous version, or all aliases; as JSON an Alias or a
// ListMappingsResponse. Deletion prints only a message.
absl::Status RunAlias(const AliasArguments& arguments, CommandContext& context) {
  if (arguments.action == "list") return List(arguments, context);
  PHIMAP_ASSIGN_OR_RETURN(const AliasName name, ParseAliasName(arguments.name));
  if (arguments.action == "delete") {
    PHIMAP_RETURN_IF_ERROR(context.client.DeleteAlias(name.name, name.alias, arguments.etag));
    *context.console.stream << arguments.name << " is deleted; its version stays" << std::endl;
    return absl::OkStatus();
  }
  absl::StatusOr<v1::Alias> moved;
  if (arguments.action == "rollback") {
    moved = context.client.RollBackAlias(name.name, name.alias);
  } else {
    PHIMAP_ASSIGN_OR_RETURN(const std::string version, VersionOf(name.name, arguments.version));
    moved = context.client.SetAlias(version, name.alias, arguments.etag);
  }
  PHIMAP_RETURN_IF_ERROR(moved.status());
  return PrintMove(name, *moved, arguments.json, context.out);
}

CLI::App* AddAliasAction(CLI::App& alias, AliasArguments& arguments, const char* action,
                         const char* help) {
  CLI::App* command = alias.add_subcommand(action, help);
  command->callback([&arguments, action] { arguments.action = action; });
  return command;
}

}  // namespace

Command AddAlias(CLI::App& app) {
  auto arguments = std::make_shared<AliasArguments>();
  CLI::App* alias =
      app.add_subcommand("alias", "Give versions names that can move: set, rollback, delete, list");
  alias->require_subcommand(1);
  constexpr char kName[] = "Mapping and alias, such as letters@prod";
  constexpr char kEtagHelp[] =
      "Require that the alias has this etag (shown by `phimap alias list`), exists ('*'), or does "
      "not exist ('none')";
  CLI::App* set =
      AddAliasAction(*alias, *arguments, "set",
                     "Point an alias at a version, which is loaded first so that no call waits");
  set->add_option("NAME@ALIAS", arguments->name, kName)->required();
  set->add_option("VERSION", arguments->version,
                  "Number of the version, or sha256: and at least 7 digits of its digest")
      ->required();
  set->add_option("--etag", arguments->etag, kEtagHelp);
  set->add_flag("--json", arguments->json, "Print the alias as JSON");
  CLI::App* rollback =
      AddAliasAction(*alias, *arguments, "rollback",
                     "Point an alias at its previous version; a second rollback undoes the first");
  rollback->add_option("NAME@ALIAS", arguments->name, kName)->required();
  rollback->add_flag("--json", arguments->json, "Print the alias as JSON");
  CLI::App* erase =
      AddAliasAction(*alias, *arguments, "delete", "Delete an alias; its version stays");
  erase->add_option("NAME@ALIAS", arguments->name, kName)->required();
  erase->add_option("--etag", arguments->etag, kEtagHelp);
  CLI::App* list =
      AddAliasAction(*alias, *arguments, "list", "List the aliases with their previous versions");
  list->add_option("NAME", arguments->name, "A mapping (default: all)");
  list->add_flag("--json", arguments->json, "Print mappings with their aliases as JSON");
  return {.app = alias,
          .run = [arguments](CommandContext& context) { return RunAlias(*arguments, context); },
          .json = &arguments->json};
}

}  // namespace phimap::cli
