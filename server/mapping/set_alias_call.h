// One SetAlias call: loads the version, then moves the alias.
#ifndef PHIMAP_SERVER_MAPPING_SET_ALIAS_CALL_H_
#define PHIMAP_SERVER_MAPPING_SET_ALIAS_CALL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/calls/unary_call.h"
#include "server/mapping/mapping_changes.h"
#include "server/registry/version_registry.h"
#include "server/schedule/task_pool.h"

namespace phimap {

// Objects that the SetAlias calls share. They must outlive the calls.
struct SetAliasEnvironment {
  VersionRegistry& registry;
  MappingChanges& changes;
  TaskPool& store_pool;
};

// A version that cannot be loaded does not get the alias. After the alias has moved, no call waits
// for the version to load.
class SetAliasCall final : public TypedUnaryCall<v1::SetAliasRequest, v1::Alias> {
 public:
  SetAliasCall(const CallStart& start, const SetAliasEnvironment& environment);

 private:
  void Start() override;
  absl::Status Check() const;
  // Called on any thread.
  void Loaded(absl::StatusOr<VersionHandle> version);
  // Moves the alias. Runs on a store thread.
  absl::Status Move();

  const SetAliasEnvironment& environment_;
  // Number of the version that was loaded.
  int64_t number_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_SET_ALIAS_CALL_H_
