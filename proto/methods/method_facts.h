// What servers, clients and proxies must know of each method. The server reads the table itself
// (server/admission/role.h). tests/docs/method_facts_test.py holds the others to it: the protos,
// the retries of the clients for Python and Node.js, the calls that the proxies of deploy/ send to
// one server, and the pages that list methods.
#ifndef PHIMAP_PROTO_METHODS_METHOD_FACTS_H_
#define PHIMAP_PROTO_METHODS_METHOD_FACTS_H_

#include "absl/strings/string_view.h"

namespace phimap {

// The rights of a caller. Each role includes the rights of the ones before it.
enum class Role {
  // May read: Transform, Get, List, Export; also calls that cost much computing time.
  kReader,
  // May add versions and extend their lives: Build, Import, KeepVersion.
  kBuilder,
  // May change the answers that readers get: aliases and deletion.
  kAdmin,
};

// What a call changes. A proxy must not repeat a call that changes something. Where servers have a
// store each, all calls go to one server but those that only read what is the same on each.
enum class Effect {
  kReads,
  // Changes nothing, but only the server that builds can answer.
  kReadsBuilds,
  kChanges,
  // Changes which versions and aliases there are. The answer reports the revision that contains the
  // change (server/rpc/revisions.h).
  kChangesNames,
};

// Whether a client may send a call again after its answer was lost.
enum class Repeat {
  kYes,
  // Yes, with the operation_id or build_id of the first time, so that the change is made once.
  kWithItsId,
  // No: its messages come from a file or from the caller's rows, which cannot be read twice.
  kNo,
};

struct MethodFacts {
  // A constructor, so that no entry can leave out a fact.
  constexpr MethodFacts(absl::string_view method, Role role, Effect effect, Repeat repeat)
      : method(method), role(role), effect(effect), repeat(repeat) {}

  absl::string_view method;
  // The lowest role that may call the method.
  Role role;
  Effect effect;
  Repeat repeat;
};

inline constexpr MethodFacts kMethodFacts[] = {
    {"phimap.v1.TransformService/Transform", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.TransformService/TransformStream", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.PredictService/Predict", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.PredictService/PredictStream", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.LearningService/Evaluate", Role::kReader, Effect::kReads, Repeat::kNo},
    {"phimap.v1.MappingService/GetBuild", Role::kReader, Effect::kReadsBuilds, Repeat::kYes},
    {"phimap.v1.MappingService/ListBuilds", Role::kReader, Effect::kReadsBuilds, Repeat::kYes},
    {"phimap.v1.MappingService/GetMapping", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/ListMappings", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/GetVersion", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/ListVersions", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/Export", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/Advise", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/EstimateBuild", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/ListCapabilities", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/GetDrift", Role::kReader, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/ListAuditEntries", Role::kAdmin, Effect::kReads, Repeat::kYes},
    {"phimap.v1.MappingService/Build", Role::kBuilder, Effect::kChangesNames, Repeat::kWithItsId},
    {"phimap.v1.LearningService/Train", Role::kBuilder, Effect::kChangesNames, Repeat::kWithItsId},
    {"phimap.v1.MappingService/CancelBuild", Role::kBuilder, Effect::kChanges, Repeat::kYes},
    {"phimap.v1.MappingService/Import", Role::kBuilder, Effect::kChangesNames, Repeat::kNo},
    {"phimap.v1.MappingService/KeepVersion", Role::kBuilder, Effect::kChanges, Repeat::kWithItsId},
    {"phimap.v1.MappingService/SetAlias", Role::kAdmin, Effect::kChangesNames, Repeat::kWithItsId},
    {"phimap.v1.MappingService/DeleteAlias", Role::kAdmin, Effect::kChangesNames,
     Repeat::kWithItsId},
    {"phimap.v1.MappingService/DeleteVersion", Role::kAdmin, Effect::kChangesNames,
     Repeat::kWithItsId},
    {"phimap.v1.MappingService/DeleteMapping", Role::kAdmin, Effect::kChangesNames,
     Repeat::kWithItsId},
    {"inference.GRPCInferenceService/ServerLive", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ServerReady", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ModelReady", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ServerMetadata", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ModelMetadata", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ModelInfer", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ModelStreamInfer", Role::kReader, Effect::kReads,
     Repeat::kYes},
    {"inference.GRPCInferenceService/ModelConfig", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/ModelStatistics", Role::kReader, Effect::kReads, Repeat::kYes},
    {"inference.GRPCInferenceService/RepositoryIndex", Role::kReader, Effect::kReads, Repeat::kYes},
    // Reflection needs a role, because callers without a role must learn nothing, not even which
    // services exist.
    {"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::kReader, Effect::kReads,
     Repeat::kYes},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kReader, Effect::kReads,
     Repeat::kYes},
};

// Returns the facts of `method`, such as "phimap.v1.MappingService/Build"; nullptr if the table
// does not have it.
constexpr const MethodFacts* FactsOfMethod(absl::string_view method) {
  for (const MethodFacts& facts : kMethodFacts) {
    if (facts.method == method) return &facts;
  }
  return nullptr;
}

}  // namespace phimap

#endif  // PHIMAP_PROTO_METHODS_METHOD_FACTS_H_
