#include "server/rpc/evaluation_service.h"

#include <memory>
#include <utility>

#include "google/protobuf/descriptor.h"
#include "server/rpc/evaluate_call.h"
#include "server/rpc/request_message.h"

namespace phimap {

EvaluationService::EvaluationService(Environment environment, const AccessControl& access,
                                     Metrics& metrics)
    : environment_(std::move(environment)),
      methods_(*v1::EvaluateRequest::descriptor()->file()->FindServiceByName("EvaluationService"),
               access, metrics),
      evaluate_(methods_.Get("Evaluate")) {
  MarkMethodCallback(evaluate_.index, NewStreamHandler(*this, &EvaluationService::OpenEvaluate));
}

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::EvaluateResponse>* EvaluationService::OpenEvaluate(
    grpc::CallbackServerContext* context) {
  const auto call = std::make_shared<EvaluateCall>(
      EvaluateCall::Environment{environment_.registry, environment_.store, environment_.memory,
                                ingest_, learning_, running_, environment_.idle_timeout,
                                environment_.yield, environment_.logger},
      evaluate_, *context);
  call->Start();
  return call.get();
}

}  // namespace phimap
