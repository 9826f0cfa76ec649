// Changes of published names: alias moves and deletions. Each change is made in the store first,
// and then in this process's copy of the names.
//
// Guarantees: a call that starts after a change was answered sees the change. Calls in progress
// keep the version they have.
#ifndef PHIMAP_SERVER_MAPPING_MAPPING_CHANGES_H_
#define PHIMAP_SERVER_MAPPING_MAPPING_CHANGES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_manager.h"
#include "server/observe/log.h"
#include "server/registry/reference.h"
#include "server/registry/version_registry.h"
#include "server/rpc/call.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"

namespace phimap {

// Thread-safe. Blocking: all methods wait for the disk.
class MappingChanges {
 public:
  // All arguments must outlive this object.
  MappingChanges(Store& store, VersionRegistry& registry, BuildManager& builds,
                 const Logger& logger)
      : store_(store), registry_(registry), builds_(builds), logger_(logger) {}

  // Moves an alias, as Store::SetAlias does. The caller should load the version first and hold it
  // meanwhile, so that no call waits for the load.
  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag,
                                       const ChangeOrigin& origin);
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag, const ChangeOrigin& origin);
  // `version` has a number or a digest.
  absl::Status DeleteVersion(const Reference& version, Rollbacks rollbacks,
                             const ChangeOrigin& origin);
  absl::Status DeleteMapping(absl::string_view mapping, Occupied occupied,
                             const ChangeOrigin& origin);
  // Changes how long a version lives. Changes no name.
  absl::StatusOr<VersionRecord> KeepVersion(absl::string_view mapping, int64_t number,
                                            absl::Duration ttl, const ChangeOrigin& origin);
  absl::Status DeleteExpired();

 private:
  // Reads the changed names from the store, unless `changed`, the result of the change, shows that
  // nothing was changed.
  void CatchUp(const absl::Status& changed);

  Store& store_;
  VersionRegistry& registry_;
  BuildManager& builds_;
  const Logger& logger_;
};

// Objects that the SetAlias calls share. They must outlive the calls.
struct SetAliasEnvironment {
  VersionRegistry& registry;
  MappingChanges& changes;
  TaskPool& store_pool;
};

// One SetAlias call: loads the version, then moves the alias.
//
// A version that cannot be loaded does not get the alias. After the alias has moved, no call waits
// for the version to load.
class SetAliasCall final : public TypedUnaryCall<v1::SetAliasRequest, v1::Alias> {
 public:
  SetAliasCall(const CallStart& start, const SetAliasEnvironment& environment);

 private:
  void Start() override;
  absl::Status Check();
  // Called on any thread.
  void Loaded(absl::StatusOr<VersionHandle> version);
  // Moves the alias, on a thread of the store.
  void Submit(absl::StatusOr<VersionHandle> version);
  // Moves the alias. Runs on a store thread.
  absl::Status Move();

  const SetAliasEnvironment& environment_;
  // Points into the request.
  Reference reference_;
  // Number of the version that was loaded.
  int64_t number_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_MAPPING_CHANGES_H_
