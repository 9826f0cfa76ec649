// One Transform: rows in, features out.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_CALL_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_CALL_H_

#include "phimap/v1/transform_service.pb.h"
#include "server/rpc/transform_unary_call.h"

namespace phimap {

class TransformCall final : public TransformUnaryCall {
 public:
  TransformCall(const TransformEnvironment& environment, const RpcMethod& method,
                const grpc::CallbackServerContext& context, const v1::TransformRequest& request,
                v1::TransformResponse* response);

 private:
  absl::StatusOr<Wanted> Read() override;
  absl::Status Accept(const VersionHandle& version, const ExamplesView& rows) override;
  char* Allocate(const Engine& engine, int64_t rows) override;
  void Complete(const ExamplesView& rows) override;

  const v1::TransformRequest& request_;
  v1::TransformResponse* const response_;
  const Residual* residual_ = nullptr;  // the version's, if it is asked for
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_CALL_H_
