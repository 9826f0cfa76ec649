// `phimap list`.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {
namespace {

struct ListArguments {
  // Mapping whose versions are listed; empty lists the mappings.
  std::string name;
  bool json = false;
};

std::string AliasesText(const v1::Mapping& mapping) {
  return absl::StrJoin(mapping.aliases(), " ", [](std::string* out, const v1::Alias& alias) {
    absl::StrAppend(out, alias.name(), "=", alias.version());
  });
}

void PrintMappings(const std::vector<v1::Mapping>& mappings, std::ostream& out) {
  size_t width = 4;
  for (const v1::Mapping& mapping : mappings) width = std::max(width, mapping.name().size());
  out << absl::StrFormat("%-*s  %7s  %8s  %-16s  %s\n", width, "NAME", "NEWEST", "VERSIONS",
                         "CREATED (UTC)", "ALIASES");
  for (const v1::Mapping& mapping : mappings) {
    const absl::Time created = absl::FromUnixSeconds(mapping.create_time().seconds());
    std::string line = absl::StrFormat(
        "%-*s  %7d  %8d  %-16s  %s", width, mapping.name(), mapping.newest_version(),
        mapping.version_count(), absl::FormatTime("%Y-%m-%d %H:%M", created, absl::UTCTimeZone()),
        AliasesText(mapping));
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

// Aliases of `mapping` that point at `version`.
std::string AliasesOf(const v1::Mapping& mapping, int64_t version) {
  std::string names;
  for (const v1::Alias& alias : mapping.aliases()) {
    if (alias.version() == version) absl::StrAppend(&names, names.empty() ? "" : " ", alias.name());
  }
  return names;
}

// Text " (until …)" for a version that expires unless it is used.
std::string ExpiryText(const v1::Version& version) {
  if (!version.has_expire_time()) return "";
  return absl::FormatTime(" (until %Y-%m-%d %H:%M)",
                          absl::FromUnixSeconds(version.expire_time().seconds()),
                          absl::UTCTimeZone());
}

void PrintVersions(const v1::Mapping& mapping, const std::vector<v1::Version>& versions,
                   std::ostream& out) {
  out << absl::StrFormat("%7s  %-16s  %10s  %8s  %-12s  %s\n", "VERSION", "CREATED (UTC)", "SIZE",
                         "FEATURES", "DIGEST", "ALIASES");
  for (const v1::Version& version : versions) {
    const absl::Time created = absl::FromUnixSeconds(version.create_time().seconds());
    std::string line = absl::StrFormat(
        "%7d  %-16s  %10s  %8d  %-12s  %s%s", version.ref().number(),
        absl::FormatTime("%Y-%m-%d %H:%M", created, absl::UTCTimeZone()),
        SizeText(version.artifact_size_bytes()), version.output_columns(),
        version.ref().digest().substr(0, 12), AliasesOf(mapping, version.ref().number()),
        absl::StrCat(version.imported() ? " (imported)" : "", ExpiryText(version)));
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

absl::Status ListVersions(const ListArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<v1::Version> versions,
                          context.client.ListVersions(arguments.name));
  if (arguments.json) {
    v1::ListVersionsResponse all;
    all.mutable_versions()->Assign(versions.begin(), versions.end());
    return PrintJson(all, context.out);
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Mapping mapping, context.client.GetMapping(arguments.name));
  PrintVersions(mapping, versions, context.out);
  return absl::OkStatus();
}

// Prints all mappings by name, or the versions of one mapping, newest first: as a table, or as the
// JSON of one ListMappingsResponse or ListVersionsResponse.
absl::Status RunList(const ListArguments& arguments, CommandContext& context) {
  if (!arguments.name.empty()) return ListVersions(arguments, context);
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<v1::Mapping> mappings, context.client.ListMappings());
  if (arguments.json) {
    v1::ListMappingsResponse all;
    all.mutable_mappings()->Assign(mappings.begin(), mappings.end());
    return PrintJson(all, context.out);
  }
  if (mappings.empty()) {
    *context.console.stream << "no mappings yet; `phimap build` makes one" << std::endl;
    return absl::OkStatus();
  }
  PrintMappings(mappings, context.out);
  return absl::OkStatus();
}

}  // namespace

Command AddList(CLI::App& app) {
  auto arguments = std::make_shared<ListArguments>();
  ListArguments& list = *arguments;
  CLI::App* command =
      app.add_subcommand("list", "List all mappings, or all versions of one, newest first");
  command->add_option("NAME", list.name,
                      "Mapping whose versions are listed (default: list the mappings)");
  command->add_flag("--json", list.json, "Print the list as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunList(*arguments, context); },
          .json = &list.json};
}

}  // namespace phimap::cli
