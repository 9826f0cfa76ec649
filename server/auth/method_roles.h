// The role that each RPC requires.
#ifndef PHIMAP_SERVER_AUTH_METHOD_ROLES_H_
#define PHIMAP_SERVER_AUTH_METHOD_ROLES_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "server/auth/role.h"

namespace phimap {

// The lowest role that may call `method`, "phimap.v1.MappingService/Build"; nullopt for a method
// that is not in the table. A service with such a method is not served at all (Dispatcher), so
// that no RPC can be added without the question being asked.
std::optional<Role> RoleForMethod(absl::string_view method);

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_METHOD_ROLES_H_
