// What a caller may do. Each role may do what those before it may.
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
  // Changes what readers are answered with: aliases and deletion.
  kAdmin,
};

// "reader", "builder", "admin".
absl::string_view RoleName(Role role);
std::optional<Role> ParseRole(absl::string_view name);

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_ROLE_H_
