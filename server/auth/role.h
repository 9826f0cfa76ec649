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

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_ROLE_H_
