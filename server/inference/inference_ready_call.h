// One ModelReady call: finds out whether a version can be served by loading it.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_READY_CALL_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_READY_CALL_H_

#include <atomic>

#include "inference/inference_service.pb.h"
#include "server/calls/unary_call.h"
#include "server/registry/version_registry.h"

namespace phimap {

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
  void Start() override;

  VersionRegistry& registry_;
  const std::atomic<bool>& serving_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_READY_CALL_H_
