// A call that ends as soon as it comes, counted and logged like every other: its request is none.
#ifndef PHIMAP_SERVER_RPC_REFUSED_CALL_H_
#define PHIMAP_SERVER_RPC_REFUSED_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_scope.h"

namespace phimap {

// Owns itself: deleted in OnDone. `Reactor` is the kind that the RPC's handler returns. Whoever may
// not make the call is told that, and not why it would be refused.
template <typename Reactor>
class RefusedCall final : public Reactor {
 public:
  // REQUIRES: `refusal` is an error.
  RefusedCall(const grpc::CallbackServerContext& context, const RpcMethod& method,
              const Logger& logger, const absl::Status& refusal)
      : scope_(context, method, logger) {
    this->Finish(scope_.Finish(scope_.admission().ok() ? refusal : scope_.admission()));
  }
  void OnDone() override { delete this; }

 private:
  RpcScope scope_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_REFUSED_CALL_H_
