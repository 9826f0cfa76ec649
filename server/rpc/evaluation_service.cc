#include "server/rpc/evaluation_service.h"

#include "google/protobuf/descriptor.h"
#include "server/rpc/refused_call.h"

namespace phimap {

EvaluationService::EvaluationService(const AccessControl& access, Metrics& metrics,
                                     const Logger& logger)
    : logger_(logger),
      methods_(*v1::EvaluateRequest::descriptor()->file()->FindServiceByName("EvaluationService"),
               access, metrics),
      evaluate_(methods_.Get("Evaluate")) {}

grpc::ServerBidiReactor<v1::EvaluateRequest, v1::EvaluateResponse>* EvaluationService::Evaluate(
    grpc::CallbackServerContext* context) {
  using Stream = grpc::ServerBidiReactor<v1::EvaluateRequest, v1::EvaluateResponse>;
  return new RefusedCall<Stream>(*context, evaluate_, logger_, NotOffered(evaluate_));
}

}  // namespace phimap
