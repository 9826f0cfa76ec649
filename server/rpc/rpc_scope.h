// What every RPC has in common, once for all handlers: whether the caller may make it, deadline,
// cancellation, metrics, the log line and the mapping of errors to the wire.
//
// Requires:   one scope for each call, alive until OnDone; admission() before anything is done for
//             the caller; Finish exactly once.
// Guarantees: a call that was not admitted ends with the reason, whatever Finish is given.
// Thread-safety: all methods may be called from any thread; Finish after all others but Cancel.
#ifndef PHIMAP_SERVER_RPC_RPC_SCOPE_H_
#define PHIMAP_SERVER_RPC_RPC_SCOPE_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/observe/log.h"
#include "server/rpc/rpc_method.h"

namespace phimap {

class RpcScope {
 public:
  // `context`, `method` and `logger` outlive the scope.
  RpcScope(const grpc::CallbackServerContext& context, const RpcMethod& method,
           const Logger& logger);

  // Why the caller may not make this call; OK if they may. Finish aborts the server when nobody
  // asked, so that no handler can forget to.
  const absl::Status& admission() {
    asked_ = true;
    return admission_;
  }

  // When gRPC handed the call over.
  absl::Time started() const { return started_; }
  // InfiniteFuture when the client set none.
  absl::Time deadline() const { return deadline_; }
  // Becomes true when the client gives up, or its deadline passes.
  const std::atomic<bool>* cancelled() const { return &cancelled_; }
  // When the client is gone: from the reactor's OnCancel, or after a write that failed.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  void MessageReceived() { method_.metrics.messages_received->Increment(); }
  void MessageSent() { method_.metrics.messages_sent->Increment(); }

  // Counts and logs the end of the call, and returns what the client gets.
  grpc::Status Finish(const absl::Status& outcome);

 private:
  const grpc::CallbackServerContext& context_;
  const RpcMethod& method_;
  const Logger& logger_;
  const absl::Time started_;
  const absl::Time deadline_;
  const absl::Status admission_;
  bool asked_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_RPC_SCOPE_H_
