#include "server/inference/inference_ready_call.h"

#include <string>

#include "absl/status/statusor.h"
#include "server/inference/inference_model.h"

namespace phimap {

void InferenceReadyCall::Start() {
  const absl::StatusOr<std::string> reference =
      ReferenceToModel(request().name(), request().version(), kModelAskedFor);
  if (!reference.ok()) return Finish(reference.status());
  if (!serving_.load()) return Finish(absl::OkStatus());
  registry_.Acquire(*reference,
                    [this, self = shared_from_this()](const absl::StatusOr<VersionHandle>& found) {
                      response().set_ready(found.ok());
                      Finish(absl::OkStatus());
                    });
}

}  // namespace phimap
