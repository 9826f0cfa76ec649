#include "server/inference/inference_service.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "inference/inference_service.pb.h"
#include "server/inference/inference_answer.h"
#include "server/inference/inference_models.h"
#include "server/inference/inference_request.h"
#include "server/registry/version_registry.h"
#include "server/rpc/call.h"
#include "server/transform/row_stream_call.h"

namespace phimap {
namespace {

// Extensions of the public protocol whose calls are supported, by their names in ServerMetadata.
// Clients check these names before they make the calls.
constexpr const char* kExtensions[] = {"model_configuration", "statistics"};

// A unary call that is answered at once, without blocking.
template <typename Request, typename Response>
class AnsweredCall final : public TypedUnaryCall<Request, Response> {
 public:
  using Answer = std::function<Response()>;
  AnsweredCall(const CallStart& start, const Answer& answer)
      : TypedUnaryCall<Request, Response>(start), answer_(answer) {}

 private:
  void Start() override {
    this->response() = answer_();
    this->Finish(absl::OkStatus());
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

// One ModelReady call: finds out whether a version can be served by loading it.
class InferenceReadyCall final
    : public TypedUnaryCall<inference::ModelReadyRequest, inference::ModelReadyResponse> {
 public:
  // `serving` says whether the server takes calls. While it is false, no version is ready, and none
  // is loaded.
  InferenceReadyCall(const CallStart& start, VersionRegistry& registry,
                     const std::atomic<bool>& serving)
      : TypedUnaryCall(start), registry_(registry), serving_(serving) {}

 private:
  // Answers "not ready", rather than an error, for a version that does not exist or cannot be
  // loaded: clients that wait for a model poll until it is ready, and stop at an error.
  void Start() override {
    const absl::StatusOr<std::string> reference =
        ReferenceToModel(request().name(), request().version(), kModelAskedFor);
    if (!reference.ok()) return Finish(reference.status());
    // A version that the caller may not know of is not ready either.
    if (!serving_.load() || !CheckReference(*this, *reference).ok()) {
      return Finish(absl::OkStatus());
    }
    registry_.Acquire(
        *reference, [this, self = shared_from_this()](const absl::StatusOr<VersionHandle>& found) {
          response().set_ready(found.ok());
          Finish(absl::OkStatus());
        });
  }

  VersionRegistry& registry_;
  const std::atomic<bool>& serving_;
};

// One ModelInfer call: receives rows in a tensor, sends features in a tensor.
class InferenceInferCall final : public RowCall<inference::ModelInferRequest> {
 public:
  InferenceInferCall(const CallStart& start, const RowCallEnvironment& environment)
      : RowCall(start, environment) {}

 private:
  absl::StatusOr<Wanted> Read() override {
    PHIMAP_RETURN_IF_ERROR(answer_.Read(request()));
    return Wanted{answer_.reference(), answer_.rows(), kInputField,
                  std::min(deadline(), started() + answer_.timeout()), answer_.part()};
  }
  absl::Status ReferenceError(const absl::Status& status) const override {
    return InModelFields(status, kModelOfInfer);
  }
  absl::StatusOr<int64_t> Accept(const VersionHandle& version, const ExamplesView&) override {
    PHIMAP_RETURN_IF_ERROR(answer_.Accept(version, InferenceAnswer::Message::kInfer));
    return answer_.row_bytes(version);
  }
  PlannedAnswer& answer() override { return answer_.message(); }
  char* Allocate(const TransformMetrics& metrics) override { return answer_.Allocate(metrics); }
  absl::Status Complete(const ExamplesView& seen) override { return answer_.Complete(seen); }

  InferenceAnswer answer_;
};

// One ModelStreamInfer call: receives rows in tensors and sends features in tensors, in order.
// Several requests may be in progress at once. Each request names its version. A failed request is
// answered with its error, and the stream continues.
class InferenceStreamCall final
    : public RowStreamCall<inference::ModelInferRequest, InferenceAnswer> {
 public:
  InferenceStreamCall(const CallStart& start, const RowCallEnvironment& environment,
                      const absl::Duration& idle_limit)
      : RowStreamCall(start, environment, idle_limit) {}

 private:
  absl::Status Read(Slot& slot) override {
    PHIMAP_RETURN_IF_ERROR(slot.answer.Read(slot.request));
    slot.rows = slot.answer.rows();
    slot.field = kInputField;
    slot.deadline = std::min(deadline(), slot.received + slot.answer.timeout());
    return absl::OkStatus();
  }
  absl::string_view ReferenceOf(Slot& slot) override { return slot.answer.reference(); }
  LivePart PartOf(const Slot& slot) const override { return slot.answer.part(); }
  absl::Status Accept(Slot& slot) override {
    PHIMAP_RETURN_IF_ERROR(
        slot.answer.Accept(slot.version, InferenceAnswer::Message::kStreamInfer));
    return WithFieldPrefix(CheckAnswerFits(slot.answer.row_bytes(slot.version), slot.rows.rows(),
                                           environment().max_message_bytes),
                           slot.field);
  }
  absl::Status Failed(Slot& slot, const absl::Status& status) override {
    if (slot.unreadable) return status;
    const absl::Status named = InModelFields(status, kModelOfInfer);
    PHIMAP_ASSIGN_OR_RETURN(slot.told, Frame(StreamErrorOf(named, slot.request)));
    return absl::OkStatus();
  }
};

}  // namespace

void AddInferenceService(const InferenceEnvironment& environment, Dispatcher& dispatcher) {
  using namespace inference;  // NOLINT: the messages of all methods
  const auto blocking = [&environment]<typename Request, typename Response>(
                            absl::Status (*read)(Call&, Store&, const Request&, Response*)) {
    return OpensBlocking<Request, Response>(
        environment.store_pool,
        [&environment, read](Call& call, const Request& request, Response* response) {
          return read(call, environment.store, request, response);
        });
  };
  const Dispatcher::Openers openers = {
      {"ServerLive", OpensAnswered<ServerLiveRequest, ServerLiveResponse>([] {
         ServerLiveResponse response;
         response.set_live(true);
         return response;
       })},
      {"ServerReady", OpensAnswered<ServerReadyRequest, ServerReadyResponse>([&environment] {
         ServerReadyResponse response;
         response.set_ready(environment.serving.load());
         return response;
       })},
      {"ServerMetadata",
       OpensAnswered<ServerMetadataRequest, ServerMetadataResponse>([&environment] {
         ServerMetadataResponse response;
         response.set_name("phimap");
         response.set_version(environment.version);
         for (const char* name : kExtensions) response.add_extensions(name);
         return response;
       })},
      {"ModelReady", Opens<InferenceReadyCall>(environment.rows.registry, environment.serving)},
      {"ModelMetadata", blocking(ReadModelMetadata)},
      {"ModelConfig", blocking(ReadModelConfig)},
      {"RepositoryIndex", blocking(ReadRepositoryIndex)},
      {"ModelStatistics", OpensBlocking<ModelStatisticsRequest, ModelStatisticsResponse>(
                              environment.store_pool,
                              [&environment](Call& call, const ModelStatisticsRequest& request,
                                             ModelStatisticsResponse* response) {
                                return ReadModelStatistics(call, environment.store,
                                                           environment.rows.registry, request,
                                                           response);
                              })},
      {"ModelInfer", Opens<InferenceInferCall>(environment.rows)},
      {"ModelStreamInfer",
       Opens<InferenceStreamCall>(environment.rows, environment.stream_idle_limit)}};
  dispatcher.Add(
      *ModelInferRequest::descriptor()->file()->FindServiceByName("GRPCInferenceService"), openers);
}

}  // namespace phimap
