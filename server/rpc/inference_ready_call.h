// One ModelReady: whether a version can be served, found out by getting it ready.
#ifndef PHIMAP_SERVER_RPC_INFERENCE_READY_CALL_H_
#define PHIMAP_SERVER_RPC_INFERENCE_READY_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "inference/inference_service.pb.h"
#include "server/registry/version_registry.h"
#include "server/rpc/rpc_scope.h"

namespace phimap {

// Owns itself: deleted in OnDone.
class InferenceReadyCall final : public grpc::ServerUnaryReactor {
 public:
  InferenceReadyCall(const grpc::CallbackServerContext& context, const RpcMethod& method,
                     const Logger& logger, inference::ModelReadyResponse* response);

  // Returns at once. `serving` says whether the server takes calls; while it does not, no version
  // is ready, and none is loaded.
  void Start(VersionRegistry& registry, bool serving, const inference::ModelReadyRequest& request);

  void OnCancel() override { scope_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // A version that does not exist, like one that cannot be loaded, is not ready: clients wait for
  // a model by asking until it is, and take an error for the end.
  void Answer(const absl::Status& acquired);
  void End(const absl::Status& status);

  RpcScope scope_;
  inference::ModelReadyResponse* const response_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_INFERENCE_READY_CALL_H_
