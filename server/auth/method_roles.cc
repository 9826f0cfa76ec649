#include "server/auth/method_roles.h"

namespace phimap {
namespace {

struct Entry {
  absl::string_view method;
  Role role;
};

// Calls that only read need the role reader, even if the answer costs computing time: Advise,
// EstimateBuild, Evaluate. So do calls that set something that this server does not support, except
// RepositoryModelLoad and RepositoryModelUnload, which would change what others are served.
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
    {"phimap.v1.MappingService/ListCapabilities", Role::kReader},
    {"phimap.v1.MappingService/Build", Role::kBuilder},
    {"phimap.v1.MappingService/CancelBuild", Role::kBuilder},
    {"phimap.v1.MappingService/Import", Role::kBuilder},
    {"phimap.v1.MappingService/KeepVersion", Role::kBuilder},
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
    // Callers without a role learn nothing, not even which services exist.
    {"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::kReader},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kReader},
    {"inference.GRPCInferenceService/ModelStreamInfer", Role::kReader},
    {"inference.GRPCInferenceService/ModelConfig", Role::kReader},
    {"inference.GRPCInferenceService/ModelStatistics", Role::kReader},
    {"inference.GRPCInferenceService/RepositoryIndex", Role::kReader},
    {"inference.GRPCInferenceService/RepositoryModelLoad", Role::kAdmin},
    {"inference.GRPCInferenceService/RepositoryModelUnload", Role::kAdmin},
    {"inference.GRPCInferenceService/SystemSharedMemoryStatus", Role::kReader},
    {"inference.GRPCInferenceService/SystemSharedMemoryRegister", Role::kReader},
    {"inference.GRPCInferenceService/SystemSharedMemoryUnregister", Role::kReader},
    {"inference.GRPCInferenceService/CudaSharedMemoryStatus", Role::kReader},
    {"inference.GRPCInferenceService/CudaSharedMemoryRegister", Role::kReader},
    {"inference.GRPCInferenceService/CudaSharedMemoryUnregister", Role::kReader},
    {"inference.GRPCInferenceService/TraceSetting", Role::kReader},
    {"inference.GRPCInferenceService/LogSettings", Role::kReader},
};

}  // namespace

std::optional<Role> RoleForMethod(absl::string_view method) {
  for (const Entry& entry : kEntries) {
    if (entry.method == method) return entry.role;
  }
  return std::nullopt;
}

}  // namespace phimap
