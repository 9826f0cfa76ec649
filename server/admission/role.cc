#include "server/admission/role.h"

#include "core/status/check.h"

namespace phimap {

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kReader:
      return "reader";
    case Role::kBuilder:
      return "builder";
    case Role::kAdmin:
      return "admin";
  }
  PHIMAP_CHECK(false);
}

std::optional<Role> ParseRole(absl::string_view name) {
  for (const Role role : {Role::kReader, Role::kBuilder, Role::kAdmin}) {
    if (name == RoleName(role)) return role;
  }
  return std::nullopt;
}

std::optional<Role> RoleForMethod(absl::string_view method) {
  const MethodFacts* const facts = FactsOfMethod(method);
  return facts == nullptr ? std::nullopt : std::optional<Role>(facts->role);
}

bool ChangesNames(absl::string_view method) {
  const MethodFacts* const facts = FactsOfMethod(method);
  return facts != nullptr && facts->effect == Effect::kChangesNames;
}

}  // namespace phimap
