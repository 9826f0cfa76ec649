// The outputs that a ModelInfer request asks for.
#ifndef PHIMAP_SERVER_RPC_INFERENCE_OUTPUTS_H_
#define PHIMAP_SERVER_RPC_INFERENCE_OUTPUTS_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// OK for none and for "features". INVALID_ARGUMENT names the output that there is not
// (UNKNOWN_OUTPUT), that is asked for twice (DUPLICATE_OUTPUT) or that has parameters
// (UNKNOWN_PARAMETER); UNIMPLEMENTED (OUTPUT_NOT_OFFERED) is for "residual", which Transform does
// not offer either.
absl::Status CheckOutputs(const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_INFERENCE_OUTPUTS_H_
