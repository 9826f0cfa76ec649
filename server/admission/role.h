// Roles by name, and what each method needs (proto/methods/method_facts.h).
#ifndef PHIMAP_SERVER_ADMISSION_ROLE_H_
#define PHIMAP_SERVER_ADMISSION_ROLE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "proto/methods/method_facts.h"

namespace phimap {

// Returns "reader", "builder" or "admin".
absl::string_view RoleName(Role role);
std::optional<Role> ParseRole(absl::string_view name);

// Returns the lowest role that may call `method`, such as "phimap.v1.MappingService/Build", or
// nullopt for a method that is not in the table. The Dispatcher does not serve a service that has
// such a method, so no RPC can be added without a decision about its role.
std::optional<Role> RoleForMethod(absl::string_view method);

// Returns whether `method` changes which versions and aliases there are. Its answer then reports
// the revision that contains the change (server/rpc/revisions.h). False for unknown methods.
bool ChangesNames(absl::string_view method);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_ROLE_H_
