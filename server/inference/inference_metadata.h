// Answer of ModelMetadata: a version's record in the protocol's words.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_METADATA_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_METADATA_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/store/store.h"

namespace phimap {

// Blocking: reads the store. INVALID_ARGUMENT (not a name, not a version), NOT_FOUND, and errors of
// the store. `properties` stay unset: clients of MLServer declare field 6 otherwise, and cannot
// read an answer that has it.
absl::Status ReadModelMetadata(Store& store, const inference::ModelMetadataRequest& request,
                               inference::ModelMetadataResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_METADATA_H_
