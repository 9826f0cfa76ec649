// The rights of a caller. Each role includes the rights of the ones before it.
#ifndef PHIMAP_SERVER_AUTH_ROLE_H_
#define PHIMAP_SERVER_AUTH_ROLE_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace phimap {

enum class Role {
  // May read: Transform, Get, List, Export.
  kReader,
  // May add versions and extend their lives: Build, Import, KeepVersion.
  kBuilder,
  // May change the answers that readers get: aliases and deletion.
  kAdmin,
};

// Returns "reader", "builder" or "admin".
absl::string_view RoleName(Role role);
std::optional<Role> ParseRole(absl::string_view name);

// Returns the lowest role that may call `method`, such as "phimap.v1.MappingService/Build", or
// nullopt for a method that is not in the table. The Dispatcher does not serve a service that has
// such a method, so no RPC can be added without a decision about its role.
std::optional<Role> RoleForMethod(absl::string_view method);

// Returns whether `method` changes which versions and aliases there are. Its answer then reports
// the revision that contains the change (server/calls/revisions.h). False for unknown methods.
bool ChangesNames(absl::string_view method);

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_ROLE_H_
