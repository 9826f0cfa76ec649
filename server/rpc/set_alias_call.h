// One SetAlias: the version is loaded first, then the alias moves.
#ifndef PHIMAP_SERVER_RPC_SET_ALIAS_CALL_H_
#define PHIMAP_SERVER_RPC_SET_ALIAS_CALL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/registry/version_registry.h"
#include "server/rpc/mapping_changes.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/task_pool.h"

namespace phimap {

// A version that cannot be loaded does not get the alias, and once it has it, no call waits for the
// load. Owns itself: deleted in OnDone.
class SetAliasCall final : public grpc::ServerUnaryReactor {
 public:
  // What the call works with; all outlive it.
  struct Environment {
    VersionRegistry& registry;
    MappingChanges& changes;
    TaskPool& store_pool;
    const Logger& logger;
  };
  SetAliasCall(const Environment& environment, const RpcMethod& method,
               const grpc::CallbackServerContext& context, const v1::SetAliasRequest& request,
               v1::Alias* response);

  // Returns at once; the call ends on a store thread.
  void Start();

  void OnCancel() override { scope_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Check() const;
  void Loaded(absl::StatusOr<VersionHandle> version);
  absl::Status Move();
  void End(const absl::Status& status);

  const Environment environment_;
  RpcScope scope_;
  const v1::SetAliasRequest& request_;
  v1::Alias* const response_;
  // Held until the alias has moved: it cannot be dropped to make room in between.
  VersionHandle version_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_SET_ALIAS_CALL_H_
