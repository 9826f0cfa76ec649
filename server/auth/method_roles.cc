#include "server/auth/method_roles.h"

namespace phimap {
namespace {

struct Entry {
  absl::string_view method;
  Role role;
};

// Who asks is a reader, even when the answer costs compute: Advise, EstimateBuild, Evaluate.
constexpr Entry kEntries[] = {
    {"phimap.v1.TransformService/Transform", Role::kReader},
    {"phimap.v1.TransformService/TransformStream", Role::kReader},
    {"phimap.v1.EvaluationService/Evaluate", Role::kReader},
    {"phimap.v1.MappingService/GetBuild", Role::kReader},
    {"phimap.v1.MappingService/ListBuilds", Role::kReader},
    {"phimap.v1.MappingService/GetMapping", Role::kReader},
    {"phimap.v1.MappingService/ListMappings", Role::kReader},
    {"phimap.v1.MappingService/GetVersion", Role::kReader},
    {"phimap.v1.MappingService/ListVersions", Role::kReader},
    {"phimap.v1.MappingService/Export", Role::kReader},
    {"phimap.v1.MappingService/Advise", Role::kReader},
    {"phimap.v1.MappingService/EstimateBuild", Role::kReader},
    {"phimap.v1.MappingService/Build", Role::kBuilder},
    {"phimap.v1.MappingService/CancelBuild", Role::kBuilder},
    {"phimap.v1.MappingService/Import", Role::kBuilder},
    {"phimap.v1.MappingService/SetAlias", Role::kAdmin},
    {"phimap.v1.MappingService/DeleteAlias", Role::kAdmin},
    {"phimap.v1.MappingService/DeleteVersion", Role::kAdmin},
    {"phimap.v1.MappingService/DeleteMapping", Role::kAdmin},
    {"inference.GRPCInferenceService/ServerLive", Role::kReader},
    {"inference.GRPCInferenceService/ServerReady", Role::kReader},
    {"inference.GRPCInferenceService/ModelReady", Role::kReader},
    {"inference.GRPCInferenceService/ServerMetadata", Role::kReader},
    {"inference.GRPCInferenceService/ModelMetadata", Role::kReader},
    {"inference.GRPCInferenceService/ModelInfer", Role::kReader},
};

}  // namespace

std::optional<Role> RoleForMethod(absl::string_view method) {
  for (const Entry& entry : kEntries) {
    if (entry.method == method) return entry.role;
  }
  return std::nullopt;
}

}  // namespace phimap
