// One Transform: rows in, features out.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_CALL_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_CALL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/rows.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/registry/version_registry.h"
#include "server/rpc/answer_budget.h"
#include "server/rpc/limits.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/transform_scheduler.h"

namespace phimap {

// Owns itself: deleted in OnDone. Request and response are gRPC's and live until then.
class TransformCall final : public grpc::ServerUnaryReactor {
 public:
  // What the call works with; outlives it.
  struct Environment {
    VersionRegistry& registry;
    TransformScheduler& scheduler;
    AnswerBudget& answers;
    const RpcLimits& limits;
    const Logger& logger;
  };
  TransformCall(const Environment& environment, const MethodMetrics& method,
                const grpc::CallbackServerContext& context, const v1::TransformRequest& request,
                v1::TransformResponse* response);

  // Returns at once; the call ends on whichever thread has its answer.
  void Start();

  void OnCancel() override { scope_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Compute(absl::StatusOr<VersionHandle> version);
  void End(const absl::Status& status);

  const Environment& environment_;
  RpcScope scope_;
  const v1::TransformRequest& request_;
  v1::TransformResponse* const response_;
  RowsView rows_;
  AnswerBudget::Reservation answer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_CALL_H_
