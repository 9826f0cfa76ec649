// TransformService: see proto/phimap/v1/transform_service.proto.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_SERVICE_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_SERVICE_H_

#include "phimap/v1/transform_service.grpc.pb.h"
#include "server/rpc/service_methods.h"
#include "server/rpc/transform_path.h"

namespace phimap {

// Thread-safe. What it is made from outlives it.
class TransformService final : public v1::TransformService::CallbackService {
 public:
  TransformService(const TransformEnvironment& environment, const AccessControl& access,
                   Metrics& metrics);

  grpc::ServerUnaryReactor* Transform(grpc::CallbackServerContext* context,
                                      const v1::TransformRequest* request,
                                      v1::TransformResponse* response) override;

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, v1::TransformStreamResponse>* OpenTransformStream(
      grpc::CallbackServerContext* context);

  const TransformEnvironment& environment_;
  const ServiceMethods methods_;
  const RpcMethod& transform_;
  const RpcMethod& transform_stream_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_SERVICE_H_
