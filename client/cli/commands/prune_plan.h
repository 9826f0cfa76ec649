// Selects the versions that a pruning deletes from the server's lists. It deletes nothing itself.
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
  // Selects only versions that were created before this time.
  std::optional<absl::Time> created_before = std::nullopt;
  // Whether to skip versions that an alias points to, or that an alias rollback would restore.
  bool unaliased = false;
};

struct PrunePlan {
  // Versions to delete, in the order of the lists.
  std::vector<v1::Version> versions;
  // Versions that match but that an alias keeps, such as "letters@3 (prod)". Empty if `unaliased`
  // skips them.
  std::vector<std::string> kept_by_aliases;
  // Mappings that have no version left afterwards.
  std::vector<std::string> emptied;
};

// Matches a shell pattern against a mapping's name: * stands for any characters, ? for one
// character, [ab] for a or b. Pure.
bool MatchesName(const std::string& pattern, const std::string& mapping);

// Adds the versions of a mapping that are to be deleted; `versions` are all its versions. Pure.
void AddToPlan(const v1::Mapping& mapping, const std::vector<v1::Version>& versions,
               const PruneRule& rule, PrunePlan& plan);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_PRUNE_PLAN_H_
