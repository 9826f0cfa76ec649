// One ModelReady: whether a version can be served, found out by getting it ready.
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
  // `serving`: whether the server takes calls; while it does not, no version is ready, and none is
  // loaded.
  InferenceReadyCall(const CallStart& start, VersionRegistry& registry,
                     const std::atomic<bool>& serving)
      : TypedUnaryCall(start), registry_(registry), serving_(serving) {}

 private:
  // A version that does not exist, like one that cannot be loaded, is not ready: clients wait for
  // a model by asking until it is, and take an error for the end.
  void Start() override;

  VersionRegistry& registry_;
  const std::atomic<bool>& serving_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_READY_CALL_H_
