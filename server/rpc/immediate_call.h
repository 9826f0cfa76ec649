// A unary call whose answer is at hand when it comes.
#ifndef PHIMAP_SERVER_RPC_IMMEDIATE_CALL_H_
#define PHIMAP_SERVER_RPC_IMMEDIATE_CALL_H_

#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_scope.h"

namespace phimap {

// Owns itself: deleted in OnDone. REQUIRES: the response is filled in.
class ImmediateCall final : public grpc::ServerUnaryReactor {
 public:
  ImmediateCall(const grpc::CallbackServerContext& context, const RpcMethod& method,
                const Logger& logger)
      : scope_(context, method, logger) {
    scope_.MessageReceived();
    if (scope_.admission().ok()) scope_.MessageSent();
    Finish(scope_.Finish(scope_.admission()));
  }
  void OnDone() override { delete this; }

 private:
  RpcScope scope_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_IMMEDIATE_CALL_H_
