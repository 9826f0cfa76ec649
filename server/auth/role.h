// The rights of a caller. Each role includes the rights of the ones before it.
#ifndef PHIMAP_SERVER_AUTH_ROLE_H_
#define PHIMAP_SERVER_AUTH_ROLE_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace phimap {

enum class Role {
  // Asks: Transform, Get, List, Export.
  kReader,
  // Adds versions: Build, Import.
  kBuilder,
  // May change the answers that readers get: aliases and deletion.
  kAdmin,
};

// "reader", "builder", "admin".
absl::string_view RoleName(Role role);
std::optional<Role> ParseRole(absl::string_view name);

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_ROLE_H_
