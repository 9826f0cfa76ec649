// Versions that a pruning deletes: decided from the server's lists, apart from deleting them.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_PLAN_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

struct PruneRule {
  // Only versions that were created before this.
  std::optional<absl::Time> created_before = std::nullopt;
  // Pass over versions that an alias names, or would be rolled back to.
  bool unaliased = false;
};

struct PrunePlan {
  // To be deleted, in the order in which they came.
  std::vector<v1::Version> versions;
  // The rule meets these, and an alias keeps them: "letters@3 (prod)". Empty if the rule skips
  // them.
  std::vector<std::string> kept_by_aliases;
  // Mappings that have no version left after it.
  std::vector<std::string> emptied;
};

// Matches a shell pattern against a mapping's name: * stands for any letters, ? for one letter,
// [ab] for one of the letters given. Pure.
bool MatchesName(const std::string& pattern, const std::string& mapping);

// Adds the versions to delete of a mapping; `versions` are all of its versions. Pure.
void AddToPlan(const v1::Mapping& mapping, const std::vector<v1::Version>& versions,
               const PruneRule& rule, PrunePlan& plan);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_PLAN_H_
