// The outputs that a ModelInfer request names.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_OUTPUTS_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_OUTPUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"

namespace phimap {

enum class InferenceOutput { kFeatures, kResidual };

// Requested outputs in their order; features if none are named. INVALID_ARGUMENT names the output
// that there is not (OUTPUT_UNKNOWN) or that is asked for twice (OUTPUT_DUPLICATED). Parameters of
// outputs mean nothing here and are passed over.
absl::StatusOr<std::vector<InferenceOutput>> OutputsOf(const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_OUTPUTS_H_
