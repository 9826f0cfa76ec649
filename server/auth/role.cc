#include "server/auth/role.h"

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

namespace {

// Whether a call changes what names mean: which versions and aliases there are.
enum class Names { kKept, kChanged };

struct Entry {
  // A constructor, so that no entry can leave out a fact.
  constexpr Entry(absl::string_view method, Role role, Names names)
      : method(method), role(role), names(names) {}

  absl::string_view method;
  Role role;
  Names names;
};

// Calls that only read need the role reader, even if the answer costs computing time: Advise,
// EstimateBuild, Evaluate.
constexpr Entry kEntries[] = {
    {"phimap.v1.TransformService/Transform", Role::kReader, Names::kKept},
    {"phimap.v1.TransformService/TransformStream", Role::kReader, Names::kKept},
    {"phimap.v1.EvaluationService/Evaluate", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/GetBuild", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/ListBuilds", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/GetMapping", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/ListMappings", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/GetVersion", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/ListVersions", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/Export", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/Advise", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/EstimateBuild", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/ListCapabilities", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/GetDrift", Role::kReader, Names::kKept},
    {"phimap.v1.MappingService/Build", Role::kBuilder, Names::kChanged},
    {"phimap.v1.MappingService/CancelBuild", Role::kBuilder, Names::kKept},
    {"phimap.v1.MappingService/Import", Role::kBuilder, Names::kChanged},
    {"phimap.v1.MappingService/KeepVersion", Role::kBuilder, Names::kKept},
    {"phimap.v1.MappingService/SetAlias", Role::kAdmin, Names::kChanged},
    {"phimap.v1.MappingService/DeleteAlias", Role::kAdmin, Names::kChanged},
    {"phimap.v1.MappingService/DeleteVersion", Role::kAdmin, Names::kChanged},
    {"phimap.v1.MappingService/DeleteMapping", Role::kAdmin, Names::kChanged},
    {"inference.GRPCInferenceService/ServerLive", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ServerReady", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ModelReady", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ServerMetadata", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ModelMetadata", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ModelInfer", Role::kReader, Names::kKept},
    // Reflection needs a role, because callers without a role must learn nothing, not even which
    // services exist.
    {"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::kReader, Names::kKept},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ModelStreamInfer", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ModelConfig", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/ModelStatistics", Role::kReader, Names::kKept},
    {"inference.GRPCInferenceService/RepositoryIndex", Role::kReader, Names::kKept},
};

const Entry* FindEntry(absl::string_view method) {
  for (const Entry& entry : kEntries) {
    if (entry.method == method) return &entry;
  }
  return nullptr;
}

}  // namespace

std::optional<Role> RoleForMethod(absl::string_view method) {
  const Entry* const entry = FindEntry(method);
  return entry == nullptr ? std::nullopt : std::optional<Role>(entry->role);
}

bool ChangesNames(absl::string_view method) {
  const Entry* const entry = FindEntry(method);
  return entry != nullptr && entry->names == Names::kChanged;
}

}  // namespace phimap
