#include "server/inference/inference_service.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "inference/inference_service.pb.h"
#include "server/calls/unary_call.h"
#include "server/inference/inference_absent.h"
#include "server/inference/inference_config.h"
#include "server/inference/inference_infer_call.h"
#include "server/inference/inference_metadata.h"
#include "server/inference/inference_ready_call.h"
#include "server/inference/inference_repository.h"
#include "server/inference/inference_statistics.h"
#include "server/inference/inference_stream_call.h"

namespace phimap {
namespace {

// A unary call that is answered at once, without blocking.
template <typename Request, typename Response>
class AnsweredCall final : public TypedUnaryCall<Request, Response> {
 public:
  using Answer = std::function<absl::StatusOr<Response>(const Request&)>;
  AnsweredCall(const CallStart& start, const Answer& answer)
      : TypedUnaryCall<Request, Response>(start), answer_(answer) {}

 private:
  void Start() override {
    absl::StatusOr<Response> answer = answer_(this->request());
    const absl::Status status = answer.status();
    if (answer.ok()) this->response() = *std::move(answer);
    this->Finish(status);
  }

  // Owned by the opener, which outlives the call.
  const Answer& answer_;
};

template <typename Request, typename Response>
Method::Open OpensAnswered(typename AnsweredCall<Request, Response>::Answer answer) {
  return [answer = std::move(answer)](const CallStart& start) -> std::shared_ptr<Call> {
    return std::make_shared<AnsweredCall<Request, Response>>(start, answer);
  };
}

// Answers with an empty response, for a call about a feature that does not exist here or a call
// that needs no action.
template <typename Request, typename Response>
Method::Open OpensEmpty() {
  return OpensAnswered<Request, Response>([](const Request&) { return Response(); });
}

template <typename Request, typename Response>
Method::Open OpensAbsent(const char* method) {
  return OpensAnswered<Request, Response>([method](const Request&) { return AbsentCall(method); });
}

using namespace inference;  // NOLINT: the messages of all methods

Dispatcher::Openers OfServer(const InferenceEnvironment& environment) {
  return {
      {"ServerLive",
       OpensAnswered<ServerLiveRequest, ServerLiveResponse>([](const ServerLiveRequest&) {
         ServerLiveResponse response;
         response.set_live(true);
         return response;
       })},
      {"ServerReady", OpensAnswered<ServerReadyRequest, ServerReadyResponse>(
                          [&environment](const ServerReadyRequest&) {
                            ServerReadyResponse response;
                            response.set_ready(environment.serving.load());
                            return response;
                          })},
      {"ServerMetadata", OpensAnswered<ServerMetadataRequest, ServerMetadataResponse>(
                             [&environment](const ServerMetadataRequest&) {
                               ServerMetadataResponse response;
                               response.set_name("phimap");
                               response.set_version(environment.version);
                               for (const char* name : kExtensions) {
                                 response.add_extensions(name);
                               }
                               return response;
                             })},
      {"TraceSetting", OpensAnswered<TraceSettingRequest, TraceSettingResponse>(TraceSettingOf)},
      {"LogSettings", OpensAnswered<LogSettingsRequest, LogSettingsResponse>(
                          [&environment](const LogSettingsRequest& request) {
                            return LogSettingsOf(request, environment.logger.level());
                          })}};
}

Dispatcher::Openers OfModels(const InferenceEnvironment& environment) {
  const auto blocking = [&environment]<typename Request, typename Response>(
                            absl::Status (*read)(Store&, const Request&, Response*)) {
    return OpensBlocking<Request, Response>(
        environment.store_pool, [&environment, read](const Request& request, Response* response) {
          return read(environment.store, request, response);
        });
  };
  return {{"ModelReady", Opens<InferenceReadyCall>(environment.rows.registry, environment.serving)},
          {"ModelMetadata", blocking(ReadModelMetadata)},
          {"ModelConfig", blocking(ReadModelConfig)},
          {"RepositoryIndex", blocking(ReadRepositoryIndex)},
          {"ModelStatistics", OpensBlocking<ModelStatisticsRequest, ModelStatisticsResponse>(
                                  environment.store_pool,
                                  [&environment](const ModelStatisticsRequest& request,
                                                 ModelStatisticsResponse* response) {
                                    return ReadModelStatistics(environment.store,
                                                               environment.rows.registry, request,
                                                               response);
                                  })},
          {"ModelInfer", Opens<InferenceInferCall>(environment.rows)},
          {"ModelStreamInfer",
           Opens<InferenceStreamCall>(environment.rows, environment.stream_idle_limit)}};
}

Dispatcher::Openers OfWhatIsAbsent() {
  return {
      {"RepositoryModelLoad",
       OpensAbsent<RepositoryModelLoadRequest, RepositoryModelLoadResponse>("RepositoryModelLoad")},
      {"RepositoryModelUnload",
       OpensAbsent<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
           "RepositoryModelUnload")},
      {"SystemSharedMemoryStatus",
       OpensEmpty<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>()},
      {"SystemSharedMemoryRegister",
       OpensAbsent<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(
           "SystemSharedMemoryRegister")},
      {"SystemSharedMemoryUnregister",
       OpensEmpty<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>()},
      {"CudaSharedMemoryStatus",
       OpensEmpty<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>()},
      {"CudaSharedMemoryRegister",
       OpensAbsent<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
           "CudaSharedMemoryRegister")},
      {"CudaSharedMemoryUnregister",
       OpensEmpty<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>()}};
}

}  // namespace

void AddInferenceService(const InferenceEnvironment& environment, Dispatcher& dispatcher) {
  Dispatcher::Openers openers = OfServer(environment);
  openers.merge(OfModels(environment));
  openers.merge(OfWhatIsAbsent());
  dispatcher.Add(
      *ModelInferRequest::descriptor()->file()->FindServiceByName("GRPCInferenceService"), openers);
}

}  // namespace phimap
