// The answer of ModelConfig: describes a version as Triton's configuration of a model.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_CONFIG_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_CONFIG_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/store/store.h"

namespace phimap {

// Extensions of the public protocol whose calls are supported, by their names in ServerMetadata.
// Clients check these names before they make the calls.
inline constexpr const char* kExtensions[] = {"model_configuration", "statistics"};

// Returns the configuration of `version`. It agrees with ModelMetadata, except that ModelMetadata
// puts the number of rows first in each shape. Pure.
inference::ModelConfig ModelConfigOf(const VersionRecord& version);

// Answers ModelConfig. Blocking: reads the store. Returns INVALID_ARGUMENT (malformed name or
// version), NOT_FOUND, and errors of the store.
absl::Status ReadModelConfig(Store& store, const inference::ModelConfigRequest& request,
                             inference::ModelConfigResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_CONFIG_H_
