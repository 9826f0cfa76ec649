#include "server/rpc/transform_service.h"

#include <memory>

#include "google/protobuf/descriptor.h"
#include "server/rpc/request_message.h"
#include "server/rpc/transform_call.h"
#include "server/rpc/transform_stream_call.h"

namespace phimap {

TransformService::TransformService(const TransformEnvironment& environment,
                                   const AccessControl& access, Metrics& metrics)
    : environment_(environment),
      methods_(*v1::TransformRequest::descriptor()->file()->FindServiceByName("TransformService"),
               access, metrics),
      transform_(methods_.Get("Transform")),
      transform_stream_(methods_.Get("TransformStream")) {
  MarkMethodCallback(transform_.index, NewRequestHandler(*this, &TransformService::Transform,
                                                         transform_, environment.logger));
  MarkMethodCallback(transform_stream_.index,
                     NewStreamHandler(*this, &TransformService::OpenTransformStream));
}

grpc::ServerUnaryReactor* TransformService::Transform(grpc::CallbackServerContext* context,
                                                      const v1::TransformRequest* request,
                                                      v1::TransformResponse* response) {
  auto* const call = new TransformCall(environment_, transform_, *context, *request, response);
  call->Start();
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::TransformStreamResponse>*
TransformService::OpenTransformStream(grpc::CallbackServerContext* context) {
  const auto call =
      std::make_shared<TransformStreamCall>(environment_, transform_stream_, *context);
  call->Start();
  return call.get();
}

}  // namespace phimap
