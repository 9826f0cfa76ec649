#include "client/cli/commands/prune_plan.h"

#include <fnmatch.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace phimap::cli {
namespace {

std::vector<std::string> AliasesThatKeep(const v1::Mapping& mapping, int64_t number) {
  std::vector<std::string> names;
  for (const v1::Alias& alias : mapping.aliases()) {
    if (alias.version() == number) names.push_back(alias.name());
    if (alias.previous_version() == number) {
      names.push_back(absl::StrCat("a rollback of ", alias.name()));
    }
  }
  return names;
}

absl::Time CreateTimeOf(const v1::Version& version) {
  return absl::FromUnixSeconds(version.create_time().seconds()) +
         absl::Nanoseconds(version.create_time().nanos());
}

}  // namespace

bool MatchesName(const std::string& pattern, const std::string& mapping) {
  return ::fnmatch(pattern.c_str(), mapping.c_str(), 0) == 0;
}

void AddToPlan(const v1::Mapping& mapping, const std::vector<v1::Version>& versions,
               const PruneRule& rule, PrunePlan& plan) {
  bool empty = mapping.aliases().empty();
  for (const v1::Version& version : versions) {
    const bool old_enough =
        !rule.created_before.has_value() || CreateTimeOf(version) < *rule.created_before;
    const std::vector<std::string> keepers = AliasesThatKeep(mapping, version.ref().number());
    if (old_enough && keepers.empty()) {
      plan.versions.push_back(version);
      continue;
    }
    empty = false;
    if (!old_enough || rule.unaliased) continue;
    plan.kept_by_aliases.push_back(absl::StrCat(mapping.name(), "@", version.ref().number(), " (",
                                                absl::StrJoin(keepers, ", "), ")"));
  }
  if (empty) plan.emptied.push_back(mapping.name());
}

}  // namespace phimap::cli
