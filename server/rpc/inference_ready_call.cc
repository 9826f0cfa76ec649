#include "server/rpc/inference_ready_call.h"

#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/inference_model.h"

namespace phimap {

InferenceReadyCall::InferenceReadyCall(const grpc::CallbackServerContext& context,
                                       const RpcMethod& method, const Logger& logger,
                                       inference::ModelReadyResponse* response)
    : scope_(context, method, logger), response_(response) {
  scope_.MessageReceived();
}

void InferenceReadyCall::Start(VersionRegistry& registry, bool serving,
                               const inference::ModelReadyRequest& request) {
  if (!scope_.admission().ok()) return End(scope_.admission());
  const absl::StatusOr<std::string> reference =
      ReferenceToModel(request.name(), request.version(), kModelAskedFor);
  if (!reference.ok()) return End(reference.status());
  if (!serving) return End(absl::OkStatus());
  registry.Acquire(*reference, [this](const absl::StatusOr<VersionHandle>& version) {
    Answer(version.status());
  });
}

void InferenceReadyCall::Answer(const absl::Status& acquired) {
  response_->set_ready(acquired.ok());
  End(absl::OkStatus());
}

void InferenceReadyCall::End(const absl::Status& status) {
  if (status.ok()) scope_.MessageSent();
  Finish(scope_.Finish(status));  // `this` may be gone now
}

}  // namespace phimap
