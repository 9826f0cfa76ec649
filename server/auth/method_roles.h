// Facts about each RPC: the role that it requires, and whether it changes names.
#ifndef PHIMAP_SERVER_AUTH_METHOD_ROLES_H_
#define PHIMAP_SERVER_AUTH_METHOD_ROLES_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "server/auth/role.h"

namespace phimap {

// Returns the lowest role that may call `method`, such as "phimap.v1.MappingService/Build", or
// nullopt for a method that is not in the table. The Dispatcher does not serve a service that has
// such a method, so no RPC can be added without a decision about its role.
std::optional<Role> RoleForMethod(absl::string_view method);

// Returns whether `method` changes which versions and aliases there are. Its answer then reports
// the revision that contains the change (server/calls/revisions.h). False for unknown methods.
bool ChangesNames(absl::string_view method);

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_METHOD_ROLES_H_
