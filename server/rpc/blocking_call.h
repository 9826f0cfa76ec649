// A unary call whose answer comes from the store: its work runs on a thread that may wait.
#ifndef PHIMAP_SERVER_RPC_BLOCKING_CALL_H_
#define PHIMAP_SERVER_RPC_BLOCKING_CALL_H_

#include <functional>

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/task_pool.h"

namespace phimap {

// Owns itself: deleted in OnDone.
class BlockingCall final : public grpc::ServerUnaryReactor {
 public:
  // Runs `body`, which fills in the response, on a thread of `pool`, and finishes with its status.
  // A call that was given up before its turn is not run.
  BlockingCall(const grpc::CallbackServerContext& context, const RpcMethod& method,
               const Logger& logger, TaskPool& pool, std::function<absl::Status()> body);

  void OnCancel() override { scope_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Run();
  void End(const absl::Status& status);

  RpcScope scope_;
  const std::function<absl::Status()> body_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_BLOCKING_CALL_H_
