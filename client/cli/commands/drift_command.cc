// `phimap drift`: whether served rows still are like those that versions were built from.
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/status_macros.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {
namespace {

struct DriftArguments {
  // "name" for all aliases of a mapping, or "name@alias".
  std::string reference;
  bool json = false;
};

// Keeps only the alias of this name.
absl::Status KeepAlias(const std::string& mapping, const std::string& alias,
                       v1::GetDriftResponse& drift) {
  v1::GetDriftResponse kept;
  for (v1::AliasDrift& each : *drift.mutable_aliases()) {
    if (each.alias() == alias) *kept.add_aliases() = std::move(each);
  }
  if (kept.aliases().empty()) {
    return absl::NotFoundError(absl::StrCat(mapping, " has no alias ", alias,
                                            "; drift is tested for aliases, which `phimap list "
                                            "NAME` shows"));
  }
  drift = std::move(kept);
  return absl::OkStatus();
}

// Prints the evidence for drift of each alias; as JSON a GetDriftResponse. NOT_FOUND if the mapping
// has no such alias.
absl::Status RunDrift(const DriftArguments& arguments, CommandContext& context) {
  const std::pair<std::string, std::string> name =
      absl::StrSplit(arguments.reference, absl::MaxSplits('@', 1));
  const bool names_alias = absl::StrContains(arguments.reference, '@');
  if (name.first.empty() || (names_alias && name.second.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("NAME[@ALIAS]: expected a mapping, or a mapping "
                     "and an alias such as letters@prod, got '",
                     arguments.reference, "'"));
  }
  PHIMAP_ASSIGN_OR_RETURN(v1::GetDriftResponse drift, context.client.GetDrift(name.first));
  if (names_alias) {
    PHIMAP_RETURN_IF_ERROR(KeepAlias(name.first, name.second, drift));
  }
  if (arguments.json) return PrintJson(drift, context.out);
  if (drift.aliases().empty()) {
    *context.console.stream << name.first
                            << " has no alias; drift is tested for aliases, which `phimap alias "
                               "set` makes"
                            << std::endl;
  }
  context.out << RenderDrift(name.first, drift);
  return absl::OkStatus();
}

}  // namespace

Command AddDrift(CLI::App& app) {
  auto arguments = std::make_shared<DriftArguments>();
  CLI::App* command = app.add_subcommand(
      "drift", "Show whether served rows still are like those a version was built from");
  command
      ->add_option("NAME[@ALIAS]", arguments->reference,
                   "A mapping or one of its aliases (default: all aliases)")
      ->required();
  command->add_flag("--json", arguments->json, "Print the answer as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunDrift(*arguments, context); },
          .json = &arguments->json};
}

}  // namespace phimap::cli
