// Parameters of a ModelInfer request that this server does not support.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_PARAMETERS_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_PARAMETERS_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// Returns INVALID_ARGUMENT (reason PARAMETER_NOT_SUPPORTED, with the field and the remedy) if a
// parameter of the request, an input or an output requests a sequence, shared memory or classes. A
// parameter that is 0, empty or false requests nothing. Ignores all other parameters, known or not:
// standard clients always send some that mean nothing here (Triton's
// triton_enable_empty_final_response, KServe's binary_data_size, MLServer's content_type). Call
// this before reading the tensors, because an input in shared memory has no contents. Pure; linear
// in the number of tensors.
absl::Status CheckParameters(const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_PARAMETERS_H_
