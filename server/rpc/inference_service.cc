#include "server/rpc/inference_service.h"

#include <utility>

#include "google/protobuf/descriptor.h"
#include "server/rpc/blocking_call.h"
#include "server/rpc/immediate_call.h"
#include "server/rpc/inference_infer_call.h"
#include "server/rpc/inference_metadata.h"
#include "server/rpc/inference_ready_call.h"
#include "server/rpc/request_message.h"

namespace phimap {

InferenceService::InferenceService(const TransformEnvironment& environment, Store& store,
                                   TaskPool& store_pool, const std::atomic<bool>& serving,
                                   std::string version, const AccessControl& access,
                                   Metrics& metrics)
    : environment_(environment),
      store_(store),
      store_pool_(store_pool),
      serving_(serving),
      version_(std::move(version)),
      methods_(*inference::ModelInferRequest::descriptor()->file()->FindServiceByName(
                   "GRPCInferenceService"),
               access, metrics),
      infer_(methods_.Get("ModelInfer")) {
  const auto take = [this](const char* name, auto answer) {
    const RpcMethod& method = methods_.Get(name);
    MarkMethodCallback(method.index, NewRequestHandler(*this, answer, method, environment_.logger));
  };
  take("ServerLive", &InferenceService::ServerLive);
  take("ServerReady", &InferenceService::ServerReady);
  take("ModelReady", &InferenceService::ModelReady);
  take("ServerMetadata", &InferenceService::ServerMetadata);
  take("ModelMetadata", &InferenceService::ModelMetadata);
  take("ModelInfer", &InferenceService::ModelInfer);
}

InferenceService::Unary* InferenceService::Answered(Context* context, const char* method) {
  return new ImmediateCall(*context, methods_.Get(method), environment_.logger);
}

InferenceService::Unary* InferenceService::ServerLive(Context* context,
                                                      const inference::ServerLiveRequest*,
                                                      inference::ServerLiveResponse* response) {
  response->set_live(true);
  return Answered(context, "ServerLive");
}

InferenceService::Unary* InferenceService::ServerReady(Context* context,
                                                       const inference::ServerReadyRequest*,
                                                       inference::ServerReadyResponse* response) {
  response->set_ready(serving_.load());
  return Answered(context, "ServerReady");
}

InferenceService::Unary* InferenceService::ModelReady(Context* context,
                                                      const inference::ModelReadyRequest* request,
                                                      inference::ModelReadyResponse* response) {
  auto* const call =
      new InferenceReadyCall(*context, methods_.Get("ModelReady"), environment_.logger, response);
  call->Start(environment_.registry, serving_.load(), *request);
  return call;
}

InferenceService::Unary* InferenceService::ServerMetadata(
    Context* context, const inference::ServerMetadataRequest*,
    inference::ServerMetadataResponse* response) {
  response->set_name("phimap");
  response->set_version(version_);
  return Answered(context, "ServerMetadata");
}

InferenceService::Unary* InferenceService::ModelMetadata(
    Context* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  return new BlockingCall(*context, methods_.Get("ModelMetadata"), environment_.logger, store_pool_,
                          [=, this] { return ReadModelMetadata(store_, *request, response); });
}

InferenceService::Unary* InferenceService::ModelInfer(Context* context,
                                                      const inference::ModelInferRequest* request,
                                                      inference::ModelInferResponse* response) {
  auto* const call = new InferenceInferCall(environment_, infer_, *context, *request, response);
  call->Start();
  return call;
}

}  // namespace phimap
