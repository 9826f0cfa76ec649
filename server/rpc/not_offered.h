// Answers for RPCs that the API has and this server does not: UNIMPLEMENTED with a message that
// names the RPC, counted and logged like every other call.
#ifndef PHIMAP_SERVER_RPC_NOT_OFFERED_H_
#define PHIMAP_SERVER_RPC_NOT_OFFERED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_scope.h"

namespace phimap {

// `Reactor` is the kind that the RPC's handler returns.
template <typename Reactor>
class NotOffered final : public Reactor {
 public:
  NotOffered(const grpc::CallbackServerContext& context, const RpcMethod& method,
             const Logger& logger)
      : scope_(context, method, logger) {
    this->Finish(scope_.Finish(scope_.admission().ok() ? Refusal(method) : scope_.admission()));
  }
  void OnDone() override { delete this; }

 private:
  static absl::Status Refusal(const RpcMethod& method) {
    return MakeError(absl::StatusCode::kUnimplemented, "RPC_NOT_OFFERED", "",
                     absl::StrCat(method.metrics.full_name,
                                  " is part of the API and not offered by this server"));
  }

  RpcScope scope_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_NOT_OFFERED_H_
