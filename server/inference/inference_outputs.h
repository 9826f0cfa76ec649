// The outputs that a ModelInfer request asks for.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_OUTPUTS_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_OUTPUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"

namespace phimap {

enum class InferenceOutput { kFeatures, kResidual };

// Returns the requested outputs in their order, or only the features if the request lists no
// outputs. INVALID_ARGUMENT names an output that does not exist (OUTPUT_UNKNOWN) or is requested
// twice (OUTPUT_DUPLICATED). Ignores the outputs' parameters, which mean nothing here.
absl::StatusOr<std::vector<InferenceOutput>> OutputsOf(const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_OUTPUTS_H_
