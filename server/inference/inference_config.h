// Answer of ModelConfig: a version as Triton's configuration of a model.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_CONFIG_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_CONFIG_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/store/store.h"

namespace phimap {

// Extensions of the public protocol, by the names that ServerMetadata gives them, whose calls are
// answered. Clients ask before they make them.
inline constexpr const char* kExtensions[] = {"model_configuration", "statistics"};

// Agrees with ModelMetadata, whose shapes have the rows before these. Pure.
inference::ModelConfig ModelConfigOf(const VersionRecord& version);

// Blocking: reads the store. INVALID_ARGUMENT (not a name, not a version), NOT_FOUND, and errors of
// the store.
absl::Status ReadModelConfig(Store& store, const inference::ModelConfigRequest& request,
                             inference::ModelConfigResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_CONFIG_H_
