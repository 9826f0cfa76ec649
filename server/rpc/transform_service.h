// TransformService: see proto/phimap/v1/transform_service.proto.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_SERVICE_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_SERVICE_H_

#include "phimap/v1/transform_service.grpc.pb.h"
#include "server/rpc/limits.h"
#include "server/rpc/service_methods.h"
#include "server/rpc/transform_call.h"

namespace phimap {

// Thread-safe. What it is made from outlives it.
class TransformService final : public v1::TransformService::CallbackService {
 public:
  TransformService(VersionRegistry& registry, TransformScheduler& scheduler,
                   const RpcLimits& limits, Metrics& metrics, const Logger& logger);

  grpc::ServerUnaryReactor* Transform(grpc::CallbackServerContext* context,
                                      const v1::TransformRequest* request,
                                      v1::TransformResponse* response) override;
  grpc::ServerBidiReactor<v1::TransformStreamRequest, v1::TransformStreamResponse>* TransformStream(
      grpc::CallbackServerContext* context) override;

 private:
  const RpcLimits limits_;
  AnswerBudget answers_;
  const TransformCall::Environment environment_;
  const ServiceMethods methods_;
  const MethodMetrics& transform_;
  const MethodMetrics& transform_stream_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_SERVICE_H_
