// Parameters of a ModelInfer request that this server does not support.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_PARAMETERS_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_PARAMETERS_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// INVALID_ARGUMENT (reason PARAMETER_NOT_SUPPORTED, the field, the remedy) if a parameter of the
// request, an input or an output requests a sequence, shared memory or classes. A parameter that is
// 0, empty or false requests nothing. All others are passed over, known or not: standard clients
// always send some that mean nothing here (Triton's triton_enable_empty_final_response, KServe's
// binary_data_size, MLServer's content_type). To be asked before the tensors are read: an input in
// shared memory has no contents. Pure; linear in the number of tensors.
absl::Status CheckParameters(const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_PARAMETERS_H_
