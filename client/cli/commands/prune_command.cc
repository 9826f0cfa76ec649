// `phimap prune`: deletes the versions that experiments left.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/prune_plan.h"
#include "client/cli/views/text.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {
namespace {

struct PruneArguments {
  // A shell's pattern for mapping names, as in "f2-*".
  std::string pattern;
  // Skips versions that an alias points to, or that an alias rollback would restore. Without this
  // flag such a version is an error, and nothing is deleted.
  bool unaliased = false;
  // Restricts the deletion to versions older than this, such as "7d"; empty means versions of any
  // age.
  std::string older_than;
  bool dry_run = false;
  // Whether to delete without asking.
  bool yes = false;
  bool json = false;
  // Answers typed at the terminal; null without a terminal.
  std::istream* answers = nullptr;
};

absl::StatusOr<PrunePlan> MakePlan(const PruneArguments& arguments, CommandContext& context) {
  PruneRule rule{.created_before = std::nullopt, .unaliased = arguments.unaliased};
  if (!arguments.older_than.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Duration age,
                            DurationOf(arguments.older_than, "--older-than"));
    rule.created_before = absl::Now() - age;
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<v1::Mapping> mappings, context.client.ListMappings());
  PrunePlan plan;
  for (const v1::Mapping& mapping : mappings) {
    if (!MatchesName(arguments.pattern, mapping.name())) continue;
    const absl::StatusOr<std::vector<v1::Version>> versions =
        context.client.ListVersions(mapping.name());
    if (absl::IsNotFound(versions.status())) continue;  // Deleted since it was listed.
    PHIMAP_RETURN_IF_ERROR(versions.status());
    AddToPlan(mapping, *versions, rule, plan);
  }
  if (plan.kept_by_aliases.empty()) return plan;
  return absl::FailedPreconditionError(
      absl::StrCat("aliases keep ", absl::StrJoin(plan.kept_by_aliases, ", "),
                   "; nothing was deleted. --unaliased skips these versions"));
}

std::string CountText(const PrunePlan& plan) {
  int64_t bytes = 0;
  for (const v1::Version& version : plan.versions) bytes += version.artifact_size_bytes();
  const size_t count = plan.versions.size();
  return absl::StrCat(CountOf(count, "version"), " of ", SizeText(bytes));
}

absl::Status PrintPlan(const PrunePlan& plan, bool json, std::ostream& out) {
  if (json) {
    v1::ListVersionsResponse all;
    all.mutable_versions()->Assign(plan.versions.begin(), plan.versions.end());
    return PrintJson(all, out);
  }
  if (plan.versions.empty()) return absl::OkStatus();
  size_t width = 7;
  for (const v1::Version& version : plan.versions) {
    width = std::max(width, client::ReferenceTo(version.ref()).size());
  }
  out << absl::StrFormat("%-*s  %-16s  %10s  %s\n", width, "VERSION", "CREATED (UTC)", "SIZE",
                         "DIGEST");
  for (const v1::Version& version : plan.versions) {
    const absl::Time created = absl::FromUnixSeconds(version.create_time().seconds());
    out << absl::StrFormat("%-*s  %-16s  %10s  %s\n", width, client::ReferenceTo(version.ref()),
                           absl::FormatTime("%Y-%m-%d %H:%M", created, absl::UTCTimeZone()),
                           SizeText(version.artifact_size_bytes()),
                           version.ref().digest().substr(0, 12));
  }
  return absl::OkStatus();
}

// OK if the user confirms the deletion.
absl::Status Confirm(const PruneArguments& arguments, const PrunePlan& plan,
                     CommandContext& context) {
  if (arguments.yes) return absl::OkStatus();
  if (arguments.answers == nullptr || !context.console.is_terminal) {
    return absl::InvalidArgumentError("--yes is required without a terminal; --dry-run only lists");
  }
  *context.console.stream << "Delete " << CountText(plan) << "? [y/N] " << std::flush;
  std::string answer;
  std::getline(*arguments.answers, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("nothing was deleted");
}

// Returns OK if another client has already deleted the version or mapping.
absl::Status UnlessGone(const absl::Status& deleted) {
  return absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
}

absl::Status Delete(const PrunePlan& plan, CommandContext& context) {
  for (const v1::Version& version : plan.versions) {
    PHIMAP_RETURN_IF_ERROR(
        UnlessGone(context.client.DeleteVersion(client::ReferenceTo(version.ref()))));
  }
  for (const std::string& mapping : plan.emptied) {
    const absl::Status deleted = context.client.DeleteMapping(mapping, /*only_if_empty=*/true);
    // The mapping has a new version or alias: keep it.
    if (absl::IsFailedPrecondition(deleted)) continue;
    PHIMAP_RETURN_IF_ERROR(UnlessGone(deleted));
  }
  return absl::OkStatus();
}

// Lists the versions to delete, as a table or as the JSON of a ListVersionsResponse. Then asks the
// user, unless `yes` is set, and deletes these versions and the mappings that have no versions
// left. A version that another client deletes meanwhile is not an error.
absl::Status RunPrune(const PruneArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const PrunePlan plan, MakePlan(arguments, context));
  PHIMAP_RETURN_IF_ERROR(PrintPlan(plan, arguments.json, context.out));
  std::ostream& console = *context.console.stream;
  const bool nothing = plan.versions.empty() && plan.emptied.empty();
  if (nothing) console << "nothing to delete" << std::endl;
  if (nothing) return absl::OkStatus();
  if (arguments.dry_run) {
    console << "would delete " << CountText(plan) << "; without --dry-run they are deleted"
            << std::endl;
    return absl::OkStatus();
  }
  context.out << std::flush;
  PHIMAP_RETURN_IF_ERROR(Confirm(arguments, plan, context));
  PHIMAP_RETURN_IF_ERROR(Delete(plan, context));
  console << CountText(plan) << " deleted" << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command AddPrune(CLI::App& app) {
  auto arguments = std::make_shared<PruneArguments>();
  PruneArguments& prune = *arguments;
  CLI::App* command = app.add_subcommand(
      "prune", "Delete the versions of all mappings whose names match a pattern such as 'f2-*'");
  command
      ->add_option("PATTERN", prune.pattern,
                   "Pattern of mapping names, in quotes: * matches any characters, ? one "
                   "character, [ab] a or b")
      ->required();
  command->add_flag("--unaliased", prune.unaliased,
                    "Skip versions that an alias points to, or that an alias rollback would "
                    "restore; without this flag such a version is an error");
  command->add_option("--older-than", prune.older_than,
                      "Only versions created longer ago than this, such as 12h or 7d");
  command->add_flag("--dry-run", prune.dry_run, "Delete nothing; list what would be deleted");
  command->add_flag("--yes", prune.yes, "Delete without asking");
  command->add_flag("--json", prune.json, "Print the versions as JSON");
  return {.app = command,
          .run =
              [arguments](CommandContext& context) {
                if (isatty(STDIN_FILENO) != 0) arguments->answers = &std::cin;
                return RunPrune(*arguments, context);
              },
          .json = &prune.json};
}

}  // namespace phimap::cli
