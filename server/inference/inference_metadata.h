// The answer of ModelMetadata: describes a version's record in the protocol's terms.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_METADATA_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_METADATA_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/store/store.h"

namespace phimap {

// Answers ModelMetadata. Blocking: reads the store. Returns INVALID_ARGUMENT (malformed name or
// version), NOT_FOUND, and errors of the store. Leaves `properties` unset: MLServer's clients
// declare field 6 differently, and cannot read an answer that has it.
absl::Status ReadModelMetadata(Store& store, const inference::ModelMetadataRequest& request,
                               inference::ModelMetadataResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_METADATA_H_
